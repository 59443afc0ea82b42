#!/bin/sh
# test_cli_ranks.sh HOLLOW - trainings on several ranks that mpirun starts: the same bytes as on one, whatever happens to a rank.
# Without MPI it is skipped. With FULL=1 in the environment every training runs on 1, 2, 3 and 4 ranks, each with 1 and with 2 threads.
. "$(dirname "$0")/cli_support.sh"

full=${FULL:-0}
directory=$(dirname "$hollow")
if ! command -v mpirun >/dev/null 2>&1 || [ ! -f "$directory/hollow-mpi.so" ]; then
    echo "there is no MPI: skipped"
    exit 77
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export TMPDIR=/tmp # a long one does not fit the names of sockets

# ranks N ARGUMENT ...: run hollow on N ranks.
ranks() {
    count=$1
    shift
    command="mpirun -n $count hollow $*"
    mpirun -n "$count" --oversubscribe "$hollow" "$@" >"$out" 2>"$err"
    got=$?
}

# processes TEXT: the numbers of the processes of hollow whose command line holds it.
processes() {
    for process in /proc/[0-9]*; do
        case $( (tr '\0' ' ' <"$process/cmdline") 2>/dev/null) in
        mpirun*) ;;
        *"$1"*) echo "${process#/proc/}" ;;
        esac
    done | sort -n
}

# table ROWS COLUMNS: numbers that are not independent, by a generator of our own.
table() {
    awk -v rows="$1" -v columns="$2" 'BEGIN {
        for (c = 1; c <= columns; c++) printf "x%d%s", c, c < columns ? "," : "\n"
        s = 1
        for (r = 0; r < rows; r++)
            for (c = 1; c <= columns; c++) {
                sum = 0
                for (k = 0; k < 4; k++) { s = (s * 16807) % 2147483647; sum += s / 2147483647 - .5 }
                x = sum + .6 * last
                last = x
                printf "%.6f%s", x, c < columns ? "," : "\n"
            }
    }'
}

# train COMMAND NAME FILE RANKS THREADS OPTION ...: one training of $work/NAME.csv on as many ranks; status in $got.
train() {
    verb=$1 name=$2 file=$3 count=$4 threads=$5
    shift 5
    # shellcheck disable=SC2086
    if [ "$count" = 1 ]; then
        command="hollow $verb fit $name --threads $threads $*"
        "$hollow" $verb fit "$work/$name.csv" -o "$work/$file" --threads "$threads" "$@" >"$out" 2>"$err"
        got=$?
    else
        ranks "$count" $verb fit "$work/$name.csv" -o "$work/$file" --threads "$threads" "$@"
    fi
}

# same COMMAND NAME OPTION ...: one process and 2, 3, 4 ranks end with the same status and the same model. With all=1 each number of ranks runs
# with 1 and with 2 threads; else the number of threads alternates.
all=$full
turn=0
same() {
    verb=$1 name=$2
    shift 2
    turn=$((turn + 1))
    train "$verb" "$name" one 1 $((turn % 2 + 1)) "$@"
    alone=$got
    if [ -s "$work/one" ]; then pass; else fail "$command: status $got, no model"; fi
    for n in 1 2 3 4; do
        for threads in 1 2; do
            if [ "$n" = 1 ] && [ $threads = $((turn % 2 + 1)) ]; then continue; fi
            if [ "$all" = 0 ] && { [ "$n" = 1 ] || [ $threads = $(((n + turn) % 2 + 1)) ]; }; then continue; fi
            train "$verb" "$name" many "$n" $threads "$@"
            if [ $got = $alone ] && cmp -s "$work/one" "$work/many"; then pass; else fail "$command: not the model of one process"; fi
            # The first line of ours: MPI may have remarks of its own before it, as where /sys is missing.
            if [ "$n" = 1 ] || grep "^hollow" "$err" | head -1 | grep -q "$n ranks, $threads thread"; then pass; else fail "$command: does not say '$n ranks' first"; fi
            rm -f "$work/many"
        done
    done
}

table 501 2 >"$work/two.csv"
table 203 43 >"$work/wide.csv"
table 120 600 >"$work/wider.csv"
all=1 # cheap enough for every run of the tests
same "" two --iters 4 --members flow --loss nll --batch 150
all=$full
same "" two --iters 12 --batch 200
same "" two --iters 4 --members flow --loss flow-matching --batch 150
same "" wide --iters 2 --members flow --loss nll --batch 130
same "" wide --iters 2 --members flow --loss flow-matching --batch 130
tiny="--calibrate off --hidden 8 --features 4 --width 8"
# shellcheck disable=SC2086
same "" wider --iters 1 --members flow --loss nll --batch 100 $tiny
# shellcheck disable=SC2086
same "" wider --iters 2 --members flow $tiny --loss flow-matching --batch 100

# A table that is streamed: each rank reads its rows of every batch.
table 100803 2 >"$work/long.csv"
same "" long --iters 3 --members flow --batch 300

# An autoencoder.
awk 'BEGIN { s = 7; for (r = 0; r < 300; r++) for (c = 0; c < 16; c++) { s = (s * 16807) % 2147483647
    printf "%d%s", (s / 2147483647 < (c % 4 + 1) / 5), c < 15 ? "," : "\n" } }' >"$work/vae.csv"
same vae vae --net fc --latent 2 --posterior hollow --iters 4 --batch 260 --seed 3

# Equations: by regression, and networks on snapshots and on steps.
awk 'BEGIN { s = 5; print "path,t,x"; for (p = 0; p < 12; p++) { x = p / 6 - 1; for (k = 0; k < 12; k++) { printf "%d,%.1f,%.6f\n", p, k / 10, x
    sum = 0; for (i = 0; i < 4; i++) { s = (s * 16807) % 2147483647; sum += s / 2147483647 - .5 }; x += -.1 * x + .3 * sum } } }' >"$work/sde.csv"
same sde sde --trajectory path --seed 2 --iters 20
same sde sde --trajectory path --seed 2 --method fp --form network --anyway --iters 6 --batch 100 --bands 2
same sde sde --trajectory path --seed 2 --method pseudo-ml --form network --iters 6

# A regression on ranks says what they share.
command="mpirun -n 2 hollow sde fit"
ranks 2 sde fit "$work/sde.csv" -o "$work/many" --trajectory path --seed 2 --iters 20
stderr_has "every rank computes the regression"
rm -f "$work/many"

# Only rank 0 writes: nothing is left beside the model.
if [ "$(find "$work" -name 'many*' | wc -l)" = 0 ]; then pass; else fail "files of other ranks are left"; fi

# A rank that is killed ends the run; its checkpoint goes on to the same bits with another number of ranks, and none is left behind.
long="--iters 60 --members flow --batch 200 --save-every 0"
# shellcheck disable=SC2086
expect 0 fit "$work/two.csv" -o "$work/one" --quiet $long
for kill in 1 2; do
    rm -f "$work/killed" "$work/killed.ckpt"
    # shellcheck disable=SC2086
    mpirun -n 3 --oversubscribe "$hollow" fit "$work/two.csv" -o "$work/killed" $long >"$out" 2>"$err" &
    run=$!
    tries=0
    while [ ! -s "$work/killed.ckpt" ] && [ $tries -lt 600 ]; do
        sleep 0.05
        tries=$((tries + 1))
    done
    victim=$(processes "fit $work/two.csv -o $work/killed" | sed -n "$((kill + 1))p")
    [ -z "$victim" ] || kill -9 "$victim" 2>/dev/null
    wait $run
    if [ -f "$work/killed" ]; then
        echo "the run was over before rank $kill could be killed"
    elif [ -s "$work/killed.ckpt" ]; then
        tries=0
        while [ -n "$(processes "fit $work/two.csv -o $work/killed")" ] && [ $tries -lt 300 ]; do
            sleep 0.2
            tries=$((tries + 1))
        done
        if [ $tries -lt 300 ]; then pass; else fail "processes are left behind"; fi
        # shellcheck disable=SC2086
        ranks $((kill + 1)) fit "$work/two.csv" -o "$work/killed" $long --resume
        if [ $got = 0 ] && cmp -s "$work/one" "$work/killed"; then pass; else fail "$command: not the bits of a run that was not killed"; fi
    else
        fail "no checkpoint after the kill"
    fi
done

# Errors are told once, and end all ranks.
ranks 2 fit "$work/nosuch.csv" -o "$work/many"
if [ $got = 2 ] && [ "$(grep -c "cannot open" "$err")" = 1 ]; then pass; else fail "$command: status $got, or not told once"; fi
ranks 2 logp "$work/one" "$work/two.csv"
if [ $got = 2 ]; then pass; else fail "$command: status $got instead of 2"; fi
stderr_has "--part"

# With parts each process has its own work.
"$hollow" logp "$work/one" "$work/two.csv" --quiet --out "$work/whole.csv"
command="mpirun -n 2 hollow logp --part"
# shellcheck disable=SC2016
mpirun --oversubscribe -n 2 sh -c '"$1" logp "$2/one" "$2/two.csv" --quiet --part $((OMPI_COMM_WORLD_RANK + 1))/2 --out "$2/part$OMPI_COMM_WORLD_RANK.csv"' \
    sh "$hollow" "$work" >"$out" 2>"$err"
if cat "$work/part0.csv" "$work/part1.csv" | cmp -s - "$work/whole.csv"; then pass; else fail "$command: not the whole"; fi

# Ranks that MPI does not know of, as from the mpirun of another MPI, do not all train the same model.
command="hollow fit as one of two ranks without mpirun"
PMI_SIZE=2 PMI_RANK=0 "$hollow" fit "$work/two.csv" -o "$work/many" --iters 2 >"$out" 2>"$err"
got=$?
if [ $got = 1 ] && [ ! -f "$work/many" ]; then pass; else fail "$command: status $got"; fi
stderr_has "but MPI reports 1"

# Ranks that see different files.
command="mpirun with two tables"
table 400 2 >"$work/other.csv"
mpirun --oversubscribe -n 1 "$hollow" fit "$work/two.csv" -o "$work/many" --iters 2 : \
    -n 1 "$hollow" fit "$work/other.csv" -o "$work/many" --iters 2 >"$out" 2>"$err"
got=$?
if [ $got != 0 ] && [ ! -f "$work/many" ]; then pass; else fail "$command: status $got"; fi
stderr_has "a different table or settings than rank 0"

# Ranks of different versions, one of which is a copy whose version was changed.
mkdir "$work/other"
number=$("$hollow" --version | grep -o '[0-9]*\.[0-9]*\.[0-9]*' | head -1)
LC_ALL=C sed "s/$(echo "$number" | sed 's/\./\\./g')/$(echo "$number" | sed 's/[0-9]$/x/')/g" "$hollow" >"$work/other/hollow"
chmod +x "$work/other/hollow"
cp "$directory/hollow-mpi.so" "$work/other"
if "$work/other/hollow" --version 2>/dev/null | grep -q "$number"; then
    echo "the version is not in the program itself: not tested"
else
    command="mpirun with two versions"
    mpirun --oversubscribe -n 1 "$hollow" fit "$work/two.csv" -o "$work/many" --iters 2 : \
        -n 1 "$work/other/hollow" fit "$work/two.csv" -o "$work/many" --iters 2 >"$out" 2>"$err"
    got=$?
    if [ $got != 0 ] && [ ! -f "$work/many" ]; then pass; else fail "$command: status $got"; fi
    stderr_has "a different version of hollow than rank 0"
fi

# Without the plug-in nothing is done N times.
cp "$hollow" "$work/hollow"
command="mpirun -n 2 hollow without its plug-in"
mpirun --oversubscribe -n 2 "$work/hollow" fit "$work/two.csv" -o "$work/many" >"$out" 2>"$err"
got=$?
if [ $got = 2 ] && [ ! -f "$work/many" ]; then pass; else fail "$command: status $got"; fi
stderr_has "built without MPI"

finish test_cli_ranks
