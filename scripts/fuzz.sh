#!/usr/bin/env bash
# fuzz.sh BUILD SECONDS [NAME ...]: run the libFuzzer targets of BUILD (all of them by default), each for SECONDS, on the corpus in
# tests/corpus/NAME and on what earlier runs found, kept in BUILD/corpus/NAME. Prints one line of JSON for each target: seconds of wall and of
# CPU, executions, the edges covered at the start, at half time and at the end, and failures; and appends it to BUILD/fuzz.json. Fails if any
# target fails; the input is then in BUILD/crashes. JOBS targets, 1 by default, run at a time.
set -euo pipefail
build=$1 seconds=$2
shift 2
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$(cd "$build" && pwd)
names=("$@")
if [ ${#names[@]} -eq 0 ]; then
    for source in "$root"/tests/fuzz_*.c; do
        name=$(basename "$source" .c)
        names+=("${name#fuzz_}")
    done
fi
mkdir -p "$build/crashes"
TIMEFORMAT='%U %S'

run_target() {
    local name=$1 failed=0 log=$build/fuzz_$1.log
    mkdir -p "$build/corpus/$name"
    local seeds=("$root/tests/corpus/$name")
    if [ "$name" = report ]; then # reads every kind of model
        seeds=("$root"/tests/corpus/{density,sde,vae})
    fi
    # Words in quotes, which the header of a model file is made of, are what changes of single bytes do not find.
    grep -ahoE '"[A-Za-z_0-9.]{2,24}"' "${seeds[@]}" -r 2>/dev/null | sort -u | head -n 400 >"$build/fuzz_$name.dict" || true
    echo '"<script>"' >>"$build/fuzz_$name.dict"
    # Timeouts are of wall time: long ones, for machines with other work.
    { time (cd "$build/crashes" && nice "$build/fuzz/fuzz_$name" -max_total_time="$seconds" -timeout=300 -rss_limit_mb=2048 \
        -max_len=50000 -dict="$build/fuzz_$name.dict" -print_final_stats=1 -artifact_prefix="$build/crashes/$name-" \
        "$build/corpus/$name" "${seeds[@]}" >"$log" 2>&1); } 2>"$build/fuzz_$name.time" || failed=1
    awk -v name="$name" -v seconds="$seconds" -v failed=$failed -v cpu="$(tail -n 1 "$build/fuzz_$name.time")" '
        /INITED/ { n = 0; for (i = 1; i < NF; i++) if ($i == "cov:") first = $(i + 1) } # the corpus was read
        /cov: / { for (i = 1; i < NF; i++) if ($i == "cov:") { n++; at[n] = substr($1, 2) + 0; cov[n] = $(i + 1) } }
        /number_of_executed_units/ { runs = $2 }
        END {
            if (!runs) runs = n ? at[n] : 0
            half = first
            for (i = 1; i <= n; i++) if (at[i] <= runs / 2) half = cov[i]
            split(cpu, used, " ")
            printf "{\"fuzz\": \"%s\", \"seconds\": %d, \"cpu\": %.1f, \"executions\": %d, \"edges_start\": %d, \"edges_half\": %d, \"edges\": %d, \"failures\": %d}\n",
                name, seconds, used[1] + used[2], runs, first, half, n ? cov[n] : 0, failed
        }' "$log" | tee -a "$build/fuzz.json"
    [ $failed -eq 0 ] || tail -n 40 "$log" >&2
    return $failed
}

status=0 running=0
for name in "${names[@]}"; do
    if [ $running -ge "${JOBS:-1}" ]; then
        wait -n || status=1
        running=$((running - 1))
    fi
    run_target "$name" &
    running=$((running + 1))
done
while [ $running -gt 0 ]; do
    wait -n || status=1
    running=$((running - 1))
done
exit $status
