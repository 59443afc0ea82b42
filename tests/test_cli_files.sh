#!/bin/sh
# test_cli_files.sh PROGRAM - files: no input is ever an output; links, pipes, full devices, locks, signals, what a crash leaves.
set -u
. "$(dirname "$0")/cli_support.sh"
small="--iters 20 --batch 64 --hidden 8 --width 8 --features 4 --layers 1 --threads 1"
data=$work/data.csv
(echo "a,b" && awk 'BEGIN { srand(3); for (i = 0; i < 300; i++) {
    u = sqrt(-2 * log(1 - rand())); v = 6.283185307 * rand(); x = u * cos(v); y = u * sin(v)
    printf "%.9g,%.9g\n", x, 0.5 * y + x * x } }') >"$data"
model=$work/m
# shellcheck disable=SC2086
expect 0 fit "$data" -o "$model" $small
# shellcheck disable=SC2086
expect 0 fit "$data" -o "$work/conditional" --context b $small

# ---- no input is ever an output ----

# kept FILE ARGUMENT ...: the call is refused, and the file stays what it was.
kept() {
    file=$1
    shift
    cp "$file" "$work/before"
    expect 2 "$@"
    same "$file" "$work/before"
    rm "$work/before"
}
ln -s "$data" "$work/link"
ln "$data" "$work/hard"
ln -s "$work/link" "$work/link2"
cp "$data" "$work/q.npz"
mkdir "$work/dir"
ln -s ../data.csv "$work/dir/up"
for target in "$data" "$work/link" "$work/link2" "$work/hard" "$work/dir/up" "$work/dir/../data.csv" "$work/./data.csv"; do
    kept "$data" logp "$model" "$data" --out "$target"
    stderr_has "$data would be replaced by the results: choose another file for them"
done
kept "$work/q.npz" logp "$model" "$work/q.npz:train" --out "$work/q.npz"
stderr_has "would be replaced by the results"
kept "$model" logp "$model" "$data" --out "$model"
kept "$model" sample "$model" --out "$model"
kept "$data" sample "$work/conditional" --context "$data" --out "$work/link"
stderr_has "would be replaced by the results"
# Not files: nothing is lost.
expect 0 logp "$model" "$data" --out /dev/null

# ---- pipes and signals ----

mkfifo "$work/fifo"
command="hollow info FIFO"
timeout 10 "$hollow" info "$work/fifo" >"$out" 2>"$err"
if [ $? = 2 ]; then pass; else fail "$command: exit status is not 2"; fi
stderr_has "not a regular file"
timeout 10 "$hollow" logp "$work/fifo" "$data" >"$out" 2>"$err"
if [ $? = 2 ]; then pass; else fail "hollow logp FIFO DATA: exit status is not 2"; fi

# terminated ARGUMENT ...: SIGTERM stops like Ctrl-C, with 143.
terminated() {
    command="hollow $* and SIGTERM"
    "$hollow" "$@" >"$out" 2>"$err" &
    pid=$!
    sleep 1
    kill -TERM $pid
    wait $pid
    got=$?
    if [ $got = 143 ]; then pass; else fail "$command: exit status $got instead of 143"; fi
    stderr_has "stopped"
}
terminated fit "$data" -o "$work/t" --iters 100000 --threads 1
file_there "$work/t.ckpt"
stderr_has "with --resume goes on"
terminated sample "$model" -n 1000000000 --threads 1 --out "$work/rows.csv"
absent "$work/rows.csv"

finish test_cli_files
