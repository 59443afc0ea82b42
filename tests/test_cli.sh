#!/bin/sh
# test_cli.sh PROGRAM - the program hollow from the outside: help, exit status, messages, JSON, files. Prints each failure and
# at the end how many checks passed and failed.
set -u
. "$(dirname "$0")/cli_support.sh"

# ---- help and wrong calls ----

for call in "" help --help -h "help help"; do
    # shellcheck disable=SC2086
    expect 0 $call
    stdout_has "usage: hollow COMMAND"
    stdout_has "bench"
    stderr_empty
done
expect 0 --version
stdout_has "hollow 0."
stdout_has " instructions, SUNDIALS "
stdout_has " thread"
expect 0 --version --json
json "$out" 'set(j) == {"version", "isa", "solvers", "threads"} and j["threads"] >= 1'
if taskset 1 true 2>/dev/null; then # bound to one processor: one thread
    command="taskset 1 hollow --version --json"
    taskset 1 "$hollow" --version --json >"$out"
    json "$out" 'j["threads"] == 1'
fi
expect 2 ft
stderr_has "unknown command 'ft'; did you mean 'fit'?"
expect 2 sde smple
stderr_has "hollow sde: unknown command 'smple'; did you mean 'sample'?"

# ---- completion ----

for shell in bash zsh; do
    expect 0 completion $shell
    stdout_has "_hollow() {"
    if command -v $shell >/dev/null; then
        if $shell -n "$out" 2>"$err"; then pass; else fail "completion $shell: not a script of $shell"; fi
    fi
done
expect 2 completion fish
stderr_has "unknown shell 'fish'; use bash or zsh"
# completed WORDS EXPECTED: what bash offers after these words, the last of which is begun.
completed() {
    command="completion of 'hollow $1'"
    # shellcheck disable=SC2016
    PATH=$(dirname "$hollow"):$PATH bash -c 'source <(hollow completion bash)
        COMP_WORDS=(hollow $1) COMP_CWORD=$(set -- $1; echo $#)
        case $1 in *" ") COMP_WORDS+=("") COMP_CWORD=$((COMP_CWORD + 1)) ;; esac
        _hollow; echo "${COMPREPLY[*]}"' - "$1" >"$out" 2>"$err"
    if [ "$(cat "$out")" = "$2" ]; then pass; else fail "$command: '$(cat "$out")' instead of '$2'"; fi
}
if command -v bash >/dev/null; then
    completed "f" "fit"
    completed "sde " "fit sample grid eval"
    completed "sde sam" "sample"
    completed "logp --wor" "--worst"
    completed "bench --cas" "--case"
    completed "bench --dtype f" "f32 f64"
    completed "logp m d --qu" "--quiet"
    completed "sde fit --penalty h" "huber"
fi

# ---- wrong calls ----

for name in paper bench info fit logp sample; do
    expect 0 "$name" --help
    stdout_has "usage: hollow $name"
    stdout_has "Options:"
    stderr_empty
    cp "$out" "$work/help"
    expect 0 help "$name"
    if cmp -s "$out" "$work/help"; then pass; else fail "help $name differs from $name --help"; fi
    expect 0 "$name" -h
    expect 2 "$name" --nonsense
    stderr_has "hollow $name: unknown option '--nonsense'; see 'hollow $name --help'"
    stdout_empty
    expect 2 "$name" -z
    stderr_has "unknown option '-z'"
    expect 2 "$name" one two three
    stderr_has "unexpected argument"
done
# Benchmarks and figures are programs of their own; without them the rest works.
mkdir "$work/alone" && cp "$hollow" "$work/alone/hollow"
for name in paper bench; do
    command="hollow $name, alone"
    "$work/alone/hollow" $name --help >"$out" 2>"$err"
    if [ $? = 1 ]; then pass; else fail "$command: exit status is not 1"; fi
    stderr_has "hollow $name: the program hollow-$name is missing; run 'make'"
    stderr_has "$work/alone"
    stdout_empty
done
if "$work/alone/hollow" --version >"$out"; then pass; else fail "hollow --version, alone"; fi
for name in nonsense; do
    expect 2 "$name"
    stderr_has "hollow: unknown command '$name'; commands are "
    stdout_empty
    expect 2 help "$name"
done
expect 2 --nonsense
stderr_has "unknown option '--nonsense'"
expect 2 bench --case x
stderr_has "hollow bench: unknown case 'x'; use one of a, b, c, d, all"
expect 2 bench --case
stderr_has "--case needs a value"
expect 2 bench --dtype=f16
stderr_has "unknown dtype 'f16'; use one of f32, f64"
expect 2 bench sde --problem cir,nonsense
stderr_has "unknown problem 'nonsense'"
expect 0 bench sde --problem cir --observed sparse --method regression --out "$work/sde"
stdout_has '"problem": "cir", "observed": "sparse", "seed": 1, "method": "regression", "drift": 0.0'
expect 0 bench sde --problem cir --observed sparse --method regression --out "$work/sde" # nothing is left to do
stdout_empty
expect 2 bench nonsense
stderr_has "unknown benchmark 'nonsense'; use one of ddim, conditioners, learning, solvers, sde"
for value in 0 -1 1x x '' 257 1.5 ' 1' 99999999999999999999999; do
    expect 2 bench --case a "--threads=$value"
    stderr_has "--threads: '$value' is not an integer in 1..256"
done
for value in nan inf -1 1x x '' ' 1'; do
    expect 2 bench --case a --seconds "$value"
    stderr_has "--seconds: '$value' is not a number in 0..3600"
done
expect 2 bench --threads 2 --clock cpu
stderr_has "--clock cpu requires one thread"
expect 2 paper --quick=yes
stderr_has "--quick takes no value"
expect 2 paper fig1 --out ""
expect 2 paper fig1 --dim 1
expect 2 paper fig1 --seed -3
expect 2 paper nonsense
stderr_has "unknown name 'nonsense'; use one of fig1"
expect 0 paper
stdout_has "fig1"

# ---- bench ----

expect 0 bench ddim --case a --seconds 0.001 --rows 64
json "$out" 'j["case"] == "a" and j["d"] == 2 and j["batch"] == 64 and j["threads"] == 1 and j["verified"] is True'
json "$out" 'all(j[k + "_s"] > 0 and j[k + "_median_s"] > 0 and j[k + "_peak"] > 0 and j["mask_speedup_" + k] > 0
    for k in ["f", "fd", "train"]) and j["peak_flops"] > 0 and j["fd_over_f"] > 0 and j["train_over_f"] > 0'
json "$out" 'j["bytes"] > 0 and j["chunk_rows"] > 0 and j["rounds"] >= 3 and "speedup_f" not in j'
stderr_has "case"
expect 0 bench --case=a --seconds=0 --rows=20 --threads=2 --dtype=f64
json "$out" 'j["dtype"] == "f64" and j["threads"] == 2 and all(j["speedup_" + k] > 0 for k in ["f", "fd", "train"])'
json "$out" 'j["precision_error"] < 1e-12'
expect 0 bench solvers --quick --out "$work/solvers"
stderr_has "inversion"
json "$out" 'j["section"] != "stiff" or (j["error"] < 150 and j["f"] + j["jvp"] < 5000)'
json "$out" 'j["section"] != "gradient" or j["adjoint"] != "stored" or j["error"] < 5e-5'
if [ -s "$work/solvers/solvers.csv" ]; then pass; else fail "no solvers.csv"; fi
expect 0 bench --case a --rows 1 --seconds 0 --clock cpu
json "$out" 'j["clock"] == "cpu"'
if [ -e /dev/full ]; then
    "$hollow" --help >/dev/full 2>"$err"
    if [ $? = 2 ]; then pass; else fail "a full disk goes unnoticed"; fi
fi

# ---- paper ----

expect 0 paper fig1 --quick --out "$work/deep/new dir's"
fig1=$work/deep/new\ dir\'s
for file in fig1_jacobian.csv fig1_factors.csv fig1_time.csv fig1.json fig1.hollow; do
    file_there "$fig1/$file"
    stdout_has "$fig1/$file"
done
if command -v gnuplot >/dev/null 2>&1; then
    file_there "$fig1/fig1_jacobian.png"
    file_there "$fig1/fig1_time.png"
fi
json "$fig1/fig1.json" 'j["d"] == 16 and j["diagonal_error"] < 1e-12 and j["sum_error"] < 1e-12 and j["product_error"] < 1e-12'
json "$fig1/fig1.json" 'j["hollow_diagonal"] == 0 and j["direct_off_diagonal"] == 0 and len(j["time"]) == 6'
if [ "$(wc -l <"$fig1/fig1_jacobian.csv")" = 257 ]; then pass; else fail "fig1_jacobian.csv does not have 257 lines"; fi
if [ "$(find "$fig1" -name '.*' -type f | wc -l)" = 0 ]; then pass; else fail "a temporary file is left"; fi

# The same seed gives the same Jacobian, another seed another.
expect 0 paper fig1 --quick --seed 1 --out "$work/same"
if cmp -s "$fig1/fig1_jacobian.csv" "$work/same/fig1_jacobian.csv"; then pass; else fail "the same seed gives another Jacobian"; fi
if cmp -s "$fig1/fig1.hollow" "$work/same/fig1.hollow"; then pass; else fail "the same seed gives another network"; fi
expect 0 paper fig1 --quick --seed 2 --dim 3 --out "$work/other"
json "$work/other/fig1.json" 'j["d"] == 3 and j["seed"] == 2'

# Without gnuplot: the numbers, and a word about the pictures.
mkdir "$work/bin"
command="hollow paper fig1, without gnuplot"
if PATH=$work/bin "$hollow" paper fig1 --quick --out "$work/plain" >"$out" 2>"$err"; then pass; else fail "$command: exit status"; fi
stderr_has "gnuplot is not installed"
file_there "$work/plain/fig1_time.csv"
if [ ! -e "$work/plain/fig1_time.png" ]; then pass; else fail "a picture without gnuplot"; fi

# A gnuplot that fails.
printf '#!/bin/sh\nexit 3\n' >"$work/bin/gnuplot"
chmod +x "$work/bin/gnuplot"
command="hollow paper fig1, gnuplot fails"
PATH=$work/bin:$PATH "$hollow" paper fig1 --quick --out "$work/broken" >"$out" 2>"$err"
if [ $? = 1 ]; then pass; else fail "$command: exit status"; fi
stderr_has "gnuplot could not draw"
if [ "$(find "$work/broken" -name '*.png' | wc -l)" = 0 ]; then pass; else fail "$command: a picture"; fi

# Places where nothing can be written.
: >"$work/file"
expect 2 paper fig1 --quick --out "$work/file"
stderr_has "Not a directory"
expect 2 paper fig1 --quick --out "$work/file/below"
stderr_has "Not a directory"
if [ "$(id -u)" != 0 ]; then
    mkdir "$work/closed"
    chmod 555 "$work/closed"
    expect 2 paper fig1 --quick --out "$work/closed"
    stderr_has "Permission denied"
    expect 2 paper fig1 --quick --out "$work/closed/below"
    stderr_has "Permission denied"
fi
mkdir -p "$work/taken/fig1_time.csv"
expect 2 paper fig1 --quick --out "$work/taken"
stderr_has "fig1_time.csv: Is a directory"
if [ "$(find "$work/taken" -name '.*' -type f | wc -l)" = 0 ]; then pass; else fail "a temporary file is left"; fi

# ---- info ----

model=$fig1/fig1.hollow
expect 0 info "$model"
stdout_has "architecture   dim 16, "
stdout_has "conditioner.forward.0.weight"
stdout_has "trainable"
stderr_empty
expect 0 info --json "$model"
json "$out" 'j["architecture"]["dim"] == 16 and j["architecture"]["conditioner"] == "made" and j["dtype"] == "f64"'
json "$out" 'sum(p["values"] - p["masked"] for p in j["parameters"]) == j["trainable"]'
json "$out" 'all(p["values"] == __import__("math").prod(p["shape"]) for p in j["parameters"])'
size=$(wc -c <"$model")
json "$out" "j['bytes'] == $size"
expect 2 info
stderr_has "usage: hollow info MODEL"
expect 2 info "$work/absent"
stderr_has "No such file or directory"
expect 2 info "$work"
stderr_has "Is a directory"
expect 2 info "$work/file" # empty
stderr_has "$work/file"
echo "this is not a model, only some words that go on for a while" >"$work/garbage"
expect 2 info "$work/garbage"
stderr_has "$work/garbage"
for cut in 4 8 100 1000 $((size - 1)); do
    head -c "$cut" "$model" >"$work/cut"
    expect 2 info "$work/cut"
    stderr_has "$work/cut"
    stdout_empty
done

# ---- Ctrl-C ----

if [ -d /proc/self ]; then
    interrupted bench --case a --seconds 100
    stdout_empty
    mkdir "$work/stopped"
    interrupted paper fig1 --out "$work/stopped"
    if [ "$(find "$work/stopped" -type f | wc -l)" = 0 ]; then pass; else fail "$command: left a file"; fi
fi

finish test_cli
