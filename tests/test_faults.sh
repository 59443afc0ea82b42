#!/bin/sh
# test_faults.sh PROGRAM SHIM [KILLS] - what must hold when processes are killed, disks are full or fail, and two runs meet: a model file is
# the old one or the new one, never half of one; a failure is an exit status and a message; a run that goes on gives the same bytes.
set -u
. "$(dirname "$0")/cli_support.sh"
shim=$2
kills=${3:-4}
cd "$work" || exit 1
awk 'BEGIN { srand(3); for (i = 0; i < 200; i++) printf "%.6f,%.6f\n", rand() * rand(), rand() - 0.5 }' >d.csv
small="--members flow --hidden 8 --width 8 --features 2 --threads 1 --quiet"
# shellcheck disable=SC2086
"$hollow" fit d.csv -o m.hollow --iters 5 $small 2>"$err" || fail "no model to begin with"
"$hollow" logp m.hollow d.csv --quiet >want.logp 2>"$err" || fail "no log-densities to begin with"
cp m.hollow kept.hollow

# same TEXT: the model is what it was.
same() {
    if cmp -s m.hollow kept.hollow; then pass; else fail "$1: the model was changed"; fi
}
# clean TEXT: nothing half-written is left beside the model.
clean() {
    left=$(ls -A | grep -v -e '^d.csv$' -e '^m.hollow$' -e '^kept' -e '^want' -e '^std' -e '^big' -e '^count$' -e '^order$' -e '^run' || true)
    if [ -z "$left" ]; then pass; else fail "$1: left behind: $left"; fi
}

# ---- kill -9, SIGTERM, SIGINT: going on gives the bytes of a run that nobody disturbed ----
iters=400
# shellcheck disable=SC2086
"$hollow" fit d.csv -o run_whole.hollow --iters $iters $small 2>"$err" || fail "the undisturbed run"
# disturb SIGNAL COUNT
disturb() {
    rm -f run.hollow run.hollow.ckpt
    resume="" n=0
    while [ $n -lt "$2" ] && [ ! -f run.hollow ]; do
        # shellcheck disable=SC2086
        env --default-signal=INT "$hollow" fit d.csv -o run.hollow --iters $iters --save-every 0.05 $small $resume 2>"$err" &
        pid=$!
        tries=0
        while [ ! -f run.hollow.ckpt ] && kill -0 $pid 2>/dev/null && [ $tries -lt 600 ]; do
            sleep 0.05
            tries=$((tries + 1))
        done
        sleep 0.$n
        kill -"$1" $pid 2>/dev/null
        wait $pid 2>/dev/null
        [ ! -f run.hollow.ckpt ] || resume="--resume"
        n=$((n + 1))
    done
    # shellcheck disable=SC2086
    [ -f run.hollow ] || "$hollow" fit d.csv -o run.hollow --iters $iters --save-every 0.05 $small $resume 2>"$err"
    if cmp -s run.hollow run_whole.hollow; then pass; else fail "after $n times SIG$1 the model has other bytes"; fi
    rm -f run.hollow run.hollow.ckpt
}
disturb KILL "$kills"
disturb TERM 1
disturb INT 1

# ---- a disk that is full: ulimit as a limit of the file's size, and a device that is ----
# shellcheck disable=SC2086
(
    trap '' XFSZ
    ulimit -f 1
    "$hollow" fit d.csv -o m.hollow --iters 5 --hidden 64 --members flow --quiet 2>"$err"
) && fail "a file that is too large: exit status 0"
same "a limit of the file's size"
rm -f m.hollow.ckpt m.hollow.lock
clean "a limit of the file's size"
expect 2 logp m.hollow d.csv --out /dev/full --quiet
stderr_has "o space left"

# ---- EIO at every write, fsync and rename of a fit, and at every read of logp ----
# shellcheck disable=SC2086
FAIL_IO_COUNT=count LD_PRELOAD=$shim "$hollow" fit d.csv -o m.hollow --iters 5 $small 2>"$err" || fail "with the shim alone"
read -r reads writes fsyncs renames <count
same "the same fit"
for what in "write $writes" "fsync $fsyncs" "rename $renames"; do
    n=1
    while [ $n -le "${what#* }" ]; do
        # shellcheck disable=SC2086
        FAIL_IO=${what% *}:$n:5 LD_PRELOAD=$shim "$hollow" fit d.csv -o m.hollow --iters 5 $small 2>"$err"
        got=$?
        if [ $got -le 2 ]; then pass; else fail "${what% *} $n fails: exit status $got"; fi
        same "${what% *} $n fails"
        rm -f m.hollow.ckpt
        clean "${what% *} $n fails"
        n=$((n + 1))
    done
done
FAIL_IO_COUNT=count LD_PRELOAD=$shim "$hollow" logp m.hollow d.csv --quiet >"$out" 2>"$err" || fail "logp with the shim alone"
read -r reads writes fsyncs renames <count
n=1
while [ $n -le "$reads" ]; do
    FAIL_IO=read:$n:5 LD_PRELOAD=$shim "$hollow" logp m.hollow d.csv --quiet >"$out" 2>"$err"
    got=$?
    if [ $got = 0 ] && cmp -s "$out" want.logp; then
        pass # a read whose failure does not matter
    elif [ $got -ge 1 ] && [ $got -le 2 ] && [ -s "$err" ]; then
        pass
    else
        fail "read $n fails: exit status $got"
    fi
    n=$((n + 1))
done

# ---- short reads and writes change nothing ----
# shellcheck disable=SC2086
FAIL_IO=short LD_PRELOAD=$shim "$hollow" fit d.csv -o m.hollow --iters 5 $small 2>"$err" || fail "short writes: exit status $?"
same "short writes"
FAIL_IO=short LD_PRELOAD=$shim "$hollow" logp m.hollow d.csv --quiet >"$out" 2>"$err" || fail "short reads: exit status $?"
if cmp -s "$out" want.logp; then pass; else fail "short reads: another result"; fi

# ---- a model torn at any byte is refused ----
size=$(wc -c <m.hollow)
for cut in 0 1 7 8 9 100 $((size / 2)) $((size - 1)); do
    head -c "$cut" m.hollow >kept_torn.hollow
    expect 2 info kept_torn.hollow
done

# ---- power loss: what a rename shows is on the disk before it, and the rename before the end ----
# shellcheck disable=SC2086
FAIL_IO_LOG=order LD_PRELOAD=$shim "$hollow" fit d.csv -o m.hollow --iters 5 $small 2>"$err"
if grep -q R order && ! grep -q -e 'WR' -e '^R' order && grep -q 'F[^W]*R[^W]*D' order; then
    pass
else
    fail "writes, fsyncs and renames come in the order $(cat order)"
fi

# ---- a directory that may not be written, a pipe that nobody reads, two runs of one model ----
mkdir kept_dir && chmod 555 kept_dir
if [ "$(id -u)" != 0 ]; then
    expect 2 sample m.hollow -n 2 --out kept_dir/s.csv --quiet
fi
expect 2 sample m.hollow -n 2 --out /proc/version/s.csv --quiet
("$hollow" sample m.hollow -n 200000 --threads 1 2>big.err; echo $? >big.status) | head -n 1 >"$out"
if [ "$(cat big.status)" != 0 ] && [ "$(wc -l <"$out")" = 1 ]; then pass; else fail "a closed pipe: exit status $(cat big.status)"; fi
# shellcheck disable=SC2086
"$hollow" fit d.csv -o run.hollow --iters 100000 --save-every 0.05 $small 2>/dev/null &
pid=$!
tries=0
while [ ! -f run.hollow.ckpt ] && [ $tries -lt 600 ]; do
    sleep 0.05
    tries=$((tries + 1))
done
# shellcheck disable=SC2086
"$hollow" fit d.csv -o run.hollow --iters 5 $small >"$out" 2>"$err"
got=$?
if [ $got = 2 ] && [ ! -f run.hollow ]; then pass; else fail "two runs with one output: exit status $got"; fi
kill -TERM $pid
wait $pid 2>/dev/null
finish test_faults
