#!/bin/bash
# kill_ranks.sh HOLLOW [TIMES] - kill -9 of a random rank at a random moment, again and again (20 times): the run must end, leave no process and
# no half-written file, and go on from its checkpoint, with another number of ranks, to the bytes of a run that was not killed.
set -u
hollow=$(realpath "$1")
times=${2:-20}
RANDOM=${SEED:-1}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 TMPDIR=/tmp
if ! command -v mpirun >/dev/null 2>&1 || [ ! -f "$(dirname "$hollow")/hollow-mpi.so" ]; then
    echo "there is no MPI: skipped"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0 early=0 late=0 resumed=0 hung=0 limit=0

# The processes that compute.
ranks_alive() {
    local command
    for command in /proc/[0-9]*/cmdline; do
        case "$(tr '\0' ' ' 2>/dev/null <"$command")" in
        "$hollow fit $work/table.csv "*) command=${command#/proc/} && echo "${command%/cmdline}" ;;
        esac
    done
}

fail() {
    echo "try $try: $*"
    failures=$((failures + 1))
}

awk 'BEGIN { s = 1; for (r = 0; r < 901; r++) for (c = 0; c < 3; c++) { sum = 0
    for (k = 0; k < 4; k++) { s = (s * 16807) % 2147483647; sum += s / 2147483647 - .5 }
    last = sum + .6 * last; printf "%.6f%s", last, c < 2 ? "," : "\n" } }' >"$work/table.csv"
mkdir "$work/one" "$work/try"
iterations=100
options="--iters $iterations --members flow --batch 200 --save-every 0 --calibrate off --threads 1 --quiet"
log_of() { sed "s| \"seconds\": [^,}]*||" "$1"; }

# shellcheck disable=SC2086
mpirun -n 2 "$hollow" fit "$work/table.csv" -o "$work/one/m.hollow" --log "$work/one/log" $options || exit 1

for ((try = 1; try <= times; try++)); do
    rm -rf "$work/try"
    mkdir "$work/try"
    model="$work/try/m.hollow"
    ranks=$((RANDOM % 3 + 2))
    begun=$SECONDS
    # shellcheck disable=SC2086
    timeout -k 5 300 mpirun -n $ranks "$hollow" fit "$work/table.csv" -o "$model" --log "$work/try/log" $options >"$work/out" 2>&1 &
    run=$!
    at=$((RANDOM % iterations))
    [ $at -gt 5 ] || sleep 0.$((RANDOM % 9 + 1)) # now and then while it starts
    while [ $at -gt 5 ] && kill -0 $run 2>/dev/null && [ "$(cat "$work/try/log" 2>/dev/null | wc -l)" -lt $at ]; do
        sleep 0.01
    done
    mapfile -t victims < <(ranks_alive)
    [ ${#victims[@]} -gt 0 ] && kill -9 "${victims[$((RANDOM % ${#victims[@]}))]}" 2>/dev/null
    wait $run
    status=$?
    limit=100
    # Open MPI 4.1 may wait for ever for a process that died while it started: nothing of ours runs or is half-written then.
    [ $((SECONDS - begun)) -lt 300 ] || hung=$((hung + 1))
    while [ -n "$(ranks_alive)" ] && [ $limit -gt 0 ]; do
        sleep 0.1
        limit=$((limit - 1))
    done
    [ $limit -gt 0 ] || fail "processes are left"
    if [ -f "$model" ]; then
        late=$((late + 1))
        cmp -s "$model" "$work/one/m.hollow" || fail "a model that is not whole"
        continue
    fi
    [ $status != 0 ] || fail "killed, but the status is 0"
    resume=
    if [ -f "$model.ckpt" ]; then
        resume=--resume
        resumed=$((resumed + 1))
    else
        early=$((early + 1))
    fi
    again=$(((ranks + RANDOM % 3 - 1) % 4 + 1))
    # shellcheck disable=SC2086
    mpirun -n $again "$hollow" fit "$work/table.csv" -o "$model" --log "$work/try/log" $options $resume >"$work/out" 2>&1 ||
        fail "$ranks ranks, killed after $at iterations, $again ranks: does not go on: $(tail -1 "$work/out")"
    cmp -s "$model" "$work/one/m.hollow" || fail "$ranks ranks, killed after $at iterations, $again ranks $resume: another model"
    [ "$(log_of "$work/try/log")" = "$(log_of "$work/one/log")" ] || fail "$ranks ranks, killed after $at iterations: another log"
    left=$(find "$work/try" -mindepth 1 ! -name m.hollow ! -name log)
    [ -z "$left" ] || fail "files are left: $left"
done
echo "$times kills: $resumed resumed from a checkpoint, $early before the first, $late after the end; mpirun itself hung $hung times; $failures failures"
[ $failures = 0 ]
