#!/bin/sh
# test_cli_files.sh PROGRAM - files: no input is ever an output; links, pipes, full devices, locks, signals, what a crash leaves.
set -u
. "$(dirname "$0")/cli_support.sh"
small="--members flow --iters 20 --batch 64 --hidden 8 --width 8 --features 4 --layers 1 --threads 1"
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
    stderr_has "the output would replace the input $data"
done
kept "$work/q.npz" logp "$model" "$work/q.npz:train" --out "$work/q.npz"
stderr_has "the output would replace the input"
kept "$model" logp "$model" "$data" --out "$model"
kept "$model" sample "$model" --out "$model"
kept "$data" sample "$work/conditional" --context "$data" --out "$work/link"
stderr_has "the output would replace the input"
# Those of training, with the files that it makes by itself.
fit="--members flow --iters 20 --batch 64 --hidden 8 --width 8 --features 4 --layers 1 --threads 1"
cp "$data" "$work/v.csv"
cp "$data" "$work/data.ckpt"
cp "$data" "$work/data.lock"
mkdir "$work/pictures"
cp "$data" "$work/pictures/training.png"
# shellcheck disable=SC2086
{
    kept "$work/v.csv" fit "$data" --valid "$work/v.csv" -o "$work/v.csv" $fit
    stderr_has "v.csv; choose another output file"
    kept "$work/data.ckpt" fit "$work/data.ckpt" -o "$work/data" $fit
    stderr_has "data.ckpt; choose another output file"
    kept "$work/data.lock" fit "$work/data.lock" -o "$work/data" $fit
    kept "$work/q.npz" fit "$work/q.npz:train" -o "$work/q.npz" $fit
    stderr_has "the output would replace the input"
    kept "$data" fit "$data" -o "$work/n" --log "$work/link2" $fit
    stderr_has "the output would replace the input"
    expect 2 fit "$data" -o "$work/n" --log "$work/n.ckpt" $fit
    stderr_has "are the same file; use different output files"
    expect 2 fit "$data" -o "$work/n" --log "$work/dir/../n" $fit
    stderr_has "are the same file"
    if command -v gnuplot >/dev/null; then
        cp "$data" "$work/before"
        expect 1 fit "$work/pictures/training.png" -o "$work/n" --plot "$work/pictures" $fit
        same "$work/pictures/training.png" "$work/before"
        rm "$work/before" "$work/n"
    fi
}
# shellcheck disable=SC2086
{
    # A file that is named like a lock or a checkpoint, but is none.
    echo "of another program" >"$work/n.lock"
    kept "$work/n.lock" fit "$data" -o "$work/n" $fit
    stderr_has "n.lock exists and is not a lock of hollow"
    rm "$work/n.lock"
    echo "of another program" >"$work/n.ckpt"
    kept "$work/n.ckpt" fit "$data" -o "$work/n" $fit
    stderr_has "n.ckpt exists and is not a checkpoint of hollow"
    rm "$work/n.ckpt"
}
absent "$work/n"
absent "$work/n.lock"
rm "$work/data.lock"

# ---- the same for autoencoders ----

images=$work/images.csv
awk 'BEGIN { srand(5); for (r = 0; r < 60; r++) { k = int(3 * rand()); print (k == 0) "," (k == 1) "," (k == 2) "," (rand() < 0.5) } }' >"$images"
code="--net linear --latent 1 --iters 20 --batch 20 --threads 1"
# shellcheck disable=SC2086
{
    expect 0 vae fit "$images" -o "$work/encoded" $code
    cp "$work/encoded" "$work/encoded.ckpt"
    cp "$work/encoded" "$work/encoded.lock"
    cp "$images" "$work/more.csv"
    ln -s "$work/encoded" "$work/encoded.csv"
    kept "$work/encoded.ckpt" vae fit "$images" --from "$work/encoded.ckpt" -o "$work/encoded" $code
    stderr_has "the output would replace the input $work/encoded.ckpt"
    kept "$work/encoded.lock" vae fit "$images" --from "$work/encoded.lock" -o "$work/encoded" $code
    kept "$work/encoded" vae fit "$images" --from "$work/encoded" -o "$work/n" --log "$work/encoded.csv" $code
    stderr_has "the output would replace the input $work/encoded"
    kept "$work/encoded" vae fit "$images" --from "$work/encoded" -o "$work/encoded.csv" $code
    kept "$work/more.csv" vae fit "$images" --valid "$work/more.csv" -o "$work/more.csv" $code
}
kept "$images" vae eval "$work/encoded" "$images" --out "$images"
kept "$work/encoded" vae eval "$work/encoded" "$images" --out "$work/encoded.csv"
kept "$images" vae sample "$work/encoded" --reconstruct "$images" --out "$images"
kept "$images" vae sample "$work/encoded" --traverse "$images" --png "$images"
expect 2 vae eval "$work/encoded" "$images" --out "$work/n.json"
stderr_has "n.json: unknown suffix"
expect 2 vae sample "$work/encoded" --out "$work/n.json"
stderr_has "n.json: unknown suffix"
# Reports and solvers.
kept "$data" report "$model" "$data" -o "$data"
kept "$model" report "$model" "$data" -o "$model"
kept "$data" calibrate "$model" "$data" -o "$work/link2"
kept "$model" calibrate "$model" "$data" -o "$model"
stderr_has "the output would replace the input"

# ---- the same for stochastic equations ----

paths=$work/paths.csv
(echo "trajectory,t,x" && awk 'BEGIN { srand(1); for (i = 0; i < 20; i++) { x = rand(); for (t = 0; t < 20; t++) {
    print i "," t / 10 "," x; x += -0.1 * x + 0.1 * (rand() - 0.5) } } }') >"$paths"
sde=$work/s.hollow
"$hollow" sde fit "$paths" -o "$sde" --method pseudo-ml --iters 20 --hidden 8 2>/dev/null # good or not
file_there "$sde"
cp "$paths" "$work/paths.ckpt"
kept "$work/paths.ckpt" sde fit "$work/paths.ckpt" -o "$work/paths" --method pseudo-ml --iters 20 --hidden 8
stderr_has "the output would replace the input"
(echo "x" && echo 1 && echo 2) >"$work/start.csv"
kept "$work/start.csv" sde sample "$sde" --start "$work/start.csv" --out "$work/start.csv"
stderr_has "the output would replace the input"
(echo "t,x" && echo 1,1) >"$work/points.csv"
kept "$work/points.csv" sde grid "$sde" "$work/points.csv" --out "$work/points.csv"
expect 2 sde grid "$work/points.csv" "$sde"
stderr_has "give MODEL before DATA"

# Not files: nothing is lost.
expect 0 logp "$model" "$data" --out /dev/null

# ---- pipes and signals ----

mkfifo "$work/fifo"
command="hollow info FIFO"
timeout 200 "$hollow" info "$work/fifo" >"$out" 2>"$err"
if [ $? = 2 ]; then pass; else fail "$command: exit status is not 2"; fi
stderr_has "not a regular file"
timeout 200 "$hollow" logp "$work/fifo" "$data" >"$out" 2>"$err"
if [ $? = 2 ]; then pass; else fail "hollow logp FIFO DATA: exit status is not 2"; fi

# Models, pages and pictures replace files only, and do not wait for the reader of a pipe.
for call in "fit $data -o" "sde fit $paths -o" "vae fit $images -o" "calibrate $model $data -o" "report $model $data -o" "vae sample $work/encoded --png"; do
    command="hollow $call FIFO"
    # shellcheck disable=SC2086
    timeout 200 "$hollow" $call "$work/fifo" >"$out" 2>"$err"
    if [ $? = 2 ]; then pass; else fail "$command: exit status is not 2"; fi
    stderr_has "not a regular file"
    if [ -p "$work/fifo" ]; then pass; else fail "$command: the pipe was replaced"; fi
    absent "$work/fifo.lock"
done
expect 0 vae fit "$images" --image 2x2 -o "$work/squares" --net linear --latent 1 --iters 3 --batch 20 --threads 1
ln -s dir/drawn.png "$work/picture.png"
for again in 1 2; do
    expect 0 vae sample "$work/squares" -n 2 --png "$work/picture.png"
    file_there "$work/dir/drawn.png"
    if [ -L "$work/picture.png" ]; then pass; else fail "$command: the link was replaced ($again)"; fi
done

# SIGTERM ends the wait for the other end of a pipe. A program that has not begun to wait after a second ends by the signal, too.
mkfifo "$work/silent"
exec 8<>"$work/silent"
for call in "logp $model -" "fit - -o $work/n" "sde fit - -o $work/n" "vae eval $work/encoded -" "sde fit $work/fifo -o $work/n" "logp $model $work/fifo" \
    "sample $model --out $work/fifo" "sde sample $sde --start -" "fit $data -o $work/n --log $work/fifo"; do
    command="hollow $call"
    # shellcheck disable=SC2086
    timeout --preserve-status -k 60 1 "$hollow" $call <"$work/silent" >"$out" 2>"$err"
    got=$?
    if [ $got = 143 ]; then pass; else fail "$command: SIGTERM gave exit status $got"; fi
done
exec 8>&-
absent "$work/n"
absent "$work/n.lock"
# A log whose reader does not read: the pipe is full.
mkfifo "$work/full"
exec 8<>"$work/full"
head -c 65536 /dev/zero >&8
command="hollow vae fit --log PIPE"
timeout --preserve-status -k 60 2 "$hollow" vae fit "$images" -o "$work/n" --net linear --latent 1 --iters 1000000 --threads 1 --log "$work/full" >"$out" 2>"$err"
got=$?
if [ $got = 143 ]; then pass; else fail "$command: SIGTERM gave exit status $got"; fi
stderr_has "the log could not be written"
exec 8>&-
rm "$work/n.ckpt"

# SIGTERM stops like Ctrl-C.
terminated fit "$data" -o "$work/t" --iters 100000 --threads 1 --log "$work/t.log"
file_there "$work/t.ckpt"
stderr_has "with --resume to continue"
command="hollow fit --resume --log PIPE"
timeout --preserve-status -k 60 1 "$hollow" fit "$data" -o "$work/t" --iters 100000 --threads 1 --resume --log "$work/fifo" >"$out" 2>"$err"
got=$?
if [ $got = 143 ]; then pass; else fail "$command: SIGTERM gave exit status $got"; fi
terminated sample "$model" -n 1000000000 --threads 1 --out "$work/rows.csv"
absent "$work/rows.csv"

# ---- one run writes a model ----

# shellcheck disable=SC2086
"$hollow" fit "$data" -o "$work/locked" $fit --iters 100000 2>"$work/first" &
pid=$!
wait_for test -e "$work/locked.lock"
# shellcheck disable=SC2086
expect 2 fit "$data" -o "$work/locked" $fit
stderr_has "another run is writing this model"
expect 2 sde fit "$paths" -o "$work/locked" --method pseudo-ml --iters 20
stderr_has "another run is writing this model"
kill -KILL $pid
wait $pid 2>/dev/null
# shellcheck disable=SC2086
expect 0 fit "$data" -o "$work/locked" $fit
absent "$work/locked.lock"

# ---- what cannot be written ----

if [ -c /dev/full ]; then
    # shellcheck disable=SC2086
    expect 2 fit "$data" -o "$work/logged" $fit --log /dev/full
    stderr_has "/dev/full: the log could not be written"
    file_there "$work/logged"
    "$hollow" sde fit "$paths" -o "$work/logged" --method pseudo-ml --iters 20 --hidden 8 --log /dev/full 2>"$err"
    if [ $? != 0 ]; then pass; else fail "sde fit --log /dev/full: exit status 0"; fi
    stderr_has "/dev/full: the log could not be written"
fi
# A checkpoint that cannot be written is no reason to lose the training: a directory stands in its place.
mkdir "$work/stuck.ckpt"
# shellcheck disable=SC2086
expect 0 fit "$data" -o "$work/stuck" $fit --save-every 0
stderr_has "warning: the checkpoint could not be written"
file_there "$work/stuck"
"$hollow" sde fit "$paths" -o "$work/stuck" --method pseudo-ml --iters 20 --hidden 8 --save-every 0.001 2>"$err"
stderr_has "warning: the checkpoint could not be written"
# What a process that was killed left of a file goes with the next one of the same name; others stay.
sh -c 'exit 0' &
gone=$!
wait $gone
mkdir "$work/figure"
touch "$work/figure/.fig1.json.$gone" "$work/figure/.fig1.json.$$" "$work/figure/.fig1.json.x" "$work/figure/.other.$gone"
"$hollow" paper fig1 --quick --out "$work/figure" >/dev/null 2>&1
absent "$work/figure/.fig1.json.$gone"
for name in fig1.json ".fig1.json.$$" .fig1.json.x ".other.$gone"; do
    if [ -e "$work/figure/$name" ]; then pass; else fail "paper fig1: $name is missing"; fi
done
# A link to a model that is not there yet stays a link.
ln -s "$work/dir/new" "$work/dangling"
# shellcheck disable=SC2086
expect 0 fit "$data" -o "$work/dangling" $fit
file_there "$work/dir/new"
if [ -L "$work/dangling" ]; then pass; else fail "$command: the link was replaced"; fi

finish test_cli_files
