#!/bin/sh
# test_memory.sh PROGRAM SHIM [MOST] - allocations of the whole process fail, one at a time, in each command: either the result is the same, or
# the exit status is 1 or 2 and the message says that memory ran out. Of each command MOST allocations, evenly spread; 0, as with
# `make test-memory`, is all of them.
set -u
. "$(dirname "$0")/cli_support.sh"
shim=$2
most=${3:-25}
cd "$work" || exit 1
awk 'BEGIN { srand(3); for (i = 0; i < 60; i++) printf "%.6f,%.6f,%.6f\n", rand() * rand(), rand() - 0.5, rand() }' >d.csv
awk 'BEGIN { srand(4); for (k = 0; k < 12; k++) { x = rand(); for (i = 0; i < 5; i++) { printf "%d,%.2f,%.6f\n", k, i / 4, x; x += 0.2 * (rand() - 0.3) } } }' >p.body
(echo "trajectory,t,x" && cat p.body) >p.csv
small="--iters 3 --hidden 4 --width 4 --features 2 --threads 1"
# shellcheck disable=SC2086
"$hollow" fit d.csv -o m.hollow --members flow $small 2>/dev/null || fail "no model to begin with"
"$hollow" sde fit p.csv -o s.hollow --method pseudo-ml --iters 3 --hidden 4 --threads 1 2>/dev/null
[ -f s.hollow ] || fail "no equation to begin with"
awk 'BEGIN { srand(5); for (i = 0; i < 40; i++) for (c = 0; c < 4; c++) printf "%d%s", rand() < .5, c < 3 ? "," : "\n" }' >v.csv
vae="--net fc --latent 2 --posterior hollow --iters 2 --threads 1"
# shellcheck disable=SC2086
"$hollow" vae fit v.csv -o a.hollow --quiet $vae 2>/dev/null || fail "no autoencoder to begin with"

# refuse ARGUMENT ...: all allocations of one command.
refuse() {
    command="hollow $*"
    FAIL_MALLOC_COUNT=count LD_PRELOAD=$shim "$hollow" "$@" >want 2>"$err"
    usual=$? # 1 of an equation that three iterations did not find
    [ $usual -le 1 ] || fail "$command: exit status $usual by itself"
    n=1
    count=$(cat count)
    step=1
    [ "$most" = 0 ] || step=$((count / most + 1))
    while [ "$n" -le "$count" ]; do
        FAIL_MALLOC=$n LD_PRELOAD=$shim "$hollow" "$@" >"$out" 2>"$err"
        got=$?
        if [ $got -gt 2 ]; then
            fail "$command: allocation $n fails: exit status $got"
        elif [ $got != 0 ] && grep -q "out of memory" "$err"; then
            pass
        elif [ $got = $usual ]; then
            if cmp -s "$out" want; then pass; else fail "$command: allocation $n fails: another result"; fi
        else
            fail "$command: allocation $n fails: no word of memory"
        fi
        n=$((n + step))
    done
}

refuse logp m.hollow d.csv --threads 1
refuse sample m.hollow -n 5 --threads 1
refuse info m.hollow
for solver in bdf-auto adams-jacobi bdf-gmres adams-functional; do
    refuse logp m.hollow d.csv --solver $solver --threads 1
done
# shellcheck disable=SC2086
refuse fit d.csv -o o.hollow $small
refuse sde fit p.csv -o o.hollow --method pseudo-ml --iters 3 --hidden 4 --threads 1
refuse sde sample s.hollow -n 3 --t0 0 --threads 1
refuse sde grid s.hollow p.csv --threads 1
refuse sde eval s.hollow p.csv --threads 1
refuse report m.hollow d.csv --rows 100 --draws 100 --json --threads 1
refuse report s.hollow p.csv --rows 100 --draws 100 --json --threads 1
refuse report a.hollow v.csv --rows 100 --draws 100 --json --threads 1
refuse calibrate m.hollow d.csv --threads 1
# shellcheck disable=SC2086
refuse vae fit v.csv -o o.hollow $vae
refuse vae eval a.hollow v.csv --threads 1
refuse vae sample a.hollow -n 2 --threads 1
finish test_memory
