#!/bin/sh
# test_cli_density.sh PROGRAM - hollow fit, logp, sample and info on small tables: formats and pipes, bits, wrong input, kill and
# Ctrl-C, divergence.
set -u
. "$(dirname "$0")/cli_support.sh"
small="--members flow --iters 60 --batch 64 --hidden 8 --width 8 --features 4 --layers 1 --threads 1"

# rows N SEED: a bent band in two columns of different units, and its side.
rows() {
    awk -v n="$1" -v seed="$2" 'BEGIN { srand(seed); for (i = 0; i < n; i++) {
        u = sqrt(-2 * log(1 - rand())); v = 6.283185307 * rand(); x = u * cos(v); y = u * sin(v); s = rand() < 0.5 ? -1 : 1.5
        printf "%.9g,%.9g,%.9g\n", 10 + x, 100 * (0.5 * y + x * x), s + 0.1 * rand() } }'
}
three=$work/three.csv
data=$work/data.csv
rows 400 3 >"$work/bare.csv"
(echo "a,b,side" && cat "$work/bare.csv") >"$three"
cut -d, -f1,2 "$three" >"$data"
model=$work/m.hollow

# fit STATUS DATA MODEL OPTION ...: a small and fast training.
fit() {
    status=$1
    from=$2
    to=$3
    shift 3
    # shellcheck disable=SC2086
    expect "$status" fit "$from" -o "$to" $small "$@"
    stdout_empty
}
# One number in each of N lines, and nothing else.
numbers() {
    if [ "$(wc -l <"$out")" = "$1" ] && ! grep -qvE '^-?([0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?|inf)$|^nan$' "$out"; then
        pass
    else
        fail "$command: not $1 numbers, one in each line"
    fi
}
# refused MODEL TEXT ...: the last call said all this in one line, and wrote no model.
refused() {
    absent "$1"
    absent "$1.ckpt"
    shift
    for fragment; do stderr_has "$fragment"; done
    if [ "$(find "$work" -maxdepth 1 -name '.*' -type f | wc -l)" = 0 ]; then pass; else fail "$command: a temporary file is left"; fi
}

# ---- fit, logp and sample, in all formats ----

fit 0 "$data" "$model" --log "$work/log"
file_there "$model"
absent "$model.ckpt"
stderr_has "360 training rows, 40 validation rows, 2 columns"
stderr_has "validation"
if grep "rows/s" "$err" | grep -qv "ETA *[0-9]*:[0-9][0-9]$"; then fail "$command: no time that is left"; else pass; fi
json "$work/log" '0 < j["iteration"] <= 60 and j["loss"] == j["loss"] and j["phase"] in ["likelihood", "flow matching"]'
json "$work/log" '(j["phase"] == "flow matching") == (j["iteration"] <= 40)' # two thirds, to three columns
json "$work/log" '("validation" in j) == (j["iteration"] % 3 == 0)'
if [ "$(wc -l <"$work/log")" = 60 ]; then pass; else fail "$command: the log does not have 60 lines"; fi
fit 0 "$data" "$work/again.hollow" --threads 2
cat "$model" >"$work/one" # the same bits, run after run, for any number of threads
same "$work/one" "$work/again.hollow"

expect 0 logp "$model" "$data"
numbers 400
stderr_has "mean log p"
stderr_has "over 400 rows"
cp "$out" "$work/logp.txt"
expect 0 logp "$model" "$data" --threads 1 --out "$work/logp.csv"
stdout_empty
same "$work/logp.csv" "$work/logp.txt"
expect 0 logp "$model" "$data" --out "$work/logp.npy"
if [ $have_python = yes ]; then
    if python3 -c '
import struct, sys
text = [float(line) for line in open(sys.argv[1])]
raw = open(sys.argv[2], "rb").read()
assert raw[:6] == b"\x93NUMPY" and b"(400,)" in raw[:128] and b"<f8" in raw[:128]
assert struct.pack("<400d", *text) == raw[-3200:]
' "$work/logp.txt" "$work/logp.npy"; then pass; else fail "$command: the text does not read back to the bits of the npy file"; fi
fi

# Rows do not see each other: alone, in another order, beside an extreme one.
sed -n '1p;200p' "$data" >"$work/alone.csv"
expect 0 logp "$model" "$work/alone.csv"
sed -n 199p "$work/logp.txt" >"$work/alone.txt"
same "$out" "$work/alone.txt"
(sed -n 1p "$data" && echo "1e9,-1e12" && sed -n 200p "$data") >"$work/beside.csv"
expect 0 logp "$model" "$work/beside.csv"
sed -n 2p "$out" >"$work/second"
same "$work/second" "$work/alone.txt"

# Columns by name, wherever they stand; by place without names.
awk -F, '{ print $3 "," $2 "," $1 }' "$three" >"$work/turned.csv"
expect 0 logp "$model" "$work/turned.csv"
same "$out" "$work/logp.txt"
sed 1d "$data" >"$work/nameless.csv"
expect 0 logp "$model" "$work/nameless.csv"
same "$out" "$work/logp.txt"


# Columns that the model does not need may hold text.
(echo "name,b,a,note" && sed 1d "$data" | awk -F, '{ print "row " NR "," $2 "," $1 ",?" }') >"$work/words.csv"
fit 2 "$work/words.csv" "$work/none.hollow"
refused "$work/none.hollow" "words.csv:2: column 'name': 'row 1'"
fit 0 "$work/words.csv" "$work/words.hollow" --columns a,b --valid "$work/words.csv"
expect 0 logp "$model" "$work/words.csv"
same "$out" "$work/logp.txt"
command="hollow logp - --columns"
if "$hollow" logp "$model" - --columns a,b <"$work/words.csv" >"$out" 2>"$err"; then pass; else fail "$command"; fi
same "$out" "$work/logp.txt"

# Pipes.
command="hollow logp - and friends in a pipe"
if "$hollow" logp "$model" - <"$data" 2>"$err" | cat >"$out"; then pass; else fail "$command"; fi
same "$out" "$work/logp.txt"
# shellcheck disable=SC2086
if "$hollow" fit - -o "$work/pipe.hollow" $small <"$data" >"$out" 2>"$err"; then pass; else fail "$command: fit"; fi
same "$work/pipe.hollow" "$model"
if "$hollow" sample "$model" -n 50 2>"$err" | "$hollow" logp "$model" - >"$out" 2>"$err"; then pass; else fail "$command: sample"; fi
numbers 50

# Samples: the same for the same seed, more begin with the same ones, npy like csv.
expect 0 sample "$model" -n 30 --seed 4
if [ "$(head -n 1 "$out")" = "a,b" ] && [ "$(wc -l <"$out")" = 31 ]; then pass; else fail "$command: not a header and 30 rows"; fi
stderr_empty
cp "$out" "$work/thirty"
expect 0 sample "$model" -n 5000 --seed 4 --threads 2
head -n 31 "$out" >"$work/first"
same "$work/first" "$work/thirty"
expect 0 sample "$model" -n 30 --seed 5
if cmp -s "$out" "$work/thirty"; then fail "$command: the same as with seed 4"; else pass; fi
expect 0 sample "$model"
if [ "$(wc -l <"$out")" = 1001 ]; then pass; else fail "$command: not 1000 rows"; fi
expect 0 sample "$model" -n 400 --out "$work/s.csv"
stdout_empty
expect 0 sample "$model" -n 400 --out "$work/s.npy"
expect 0 logp "$model" "$work/s.csv"
cp "$out" "$work/s.txt"
expect 0 logp "$model" "$work/s.npy"
same "$out" "$work/s.txt"
fit 0 "$work/s.npy" "$work/npy.hollow"
if [ $have_python = yes ]; then
    python3 -c '
import sys, zipfile
with zipfile.ZipFile(sys.argv[1] + ".npz", "w", zipfile.ZIP_DEFLATED) as z:
    z.write(sys.argv[1] + ".npy", "train.npy")
    z.write(sys.argv[1] + ".npy", "test.npy")
' "$work/s"
    fit 0 "$work/s.npz" "$work/npz.hollow" --array train
    same "$work/npz.hollow" "$work/npy.hollow"
    expect 0 logp "$model" "$work/s.npz:test"
    same "$out" "$work/s.txt"
    fit 2 "$work/s.npz" "$work/none.hollow"
    refused "$work/none.hollow" "s.npz"
fi

# The outcome as JSON, and nothing else where nothing else is wanted.
# shellcheck disable=SC2086
expect 0 fit "$data" -o "$work/json.hollow" $small --json --quiet
stderr_empty
same "$work/json.hollow" "$model"
json "$out" 'j["verdict"] in ["good", "normal"] and j["end"] == "done" and j["iterations"] == 60 and j["rows"] == 360'
json "$out" 'j["validation"] < 20 and j["normal"] < 20 and j["findings"] == [] and j["columns"] == 2'
# shellcheck disable=SC2086
expect 2 fit "$data" -o "$work/none.hollow" $small --itres 5
refused "$work/none.hollow" "unknown option '--itres'; did you mean '--iters'?"

# Each setting of training has an effect; zero is a setting like any other.
for setting in "--warmup 30" "--last-lr 0.5" "--clip 0.01" "--average 0.5" "--transport off" "--jitter 0" "--average 0" "--beta1 0" "--straight 1"; do
    # shellcheck disable=SC2086
    fit 0 "$data" "$work/set.hollow" $setting
    expect 0 logp "$work/set.hollow" "$data"
    if cmp -s "$out" "$work/logp.txt"; then fail "$setting changes nothing"; else pass; fi
done
fit 0 "$data" "$work/set.hollow" --transport on --clip 10 --average 0.99 --last-lr 0.01
expect 0 logp "$work/set.hollow" "$data"
same "$out" "$work/logp.txt"

awk 'BEGIN { srand(1); for (r = 0; r < 14; r++) for (i = 0; i < 8; i++) printf "%.6f%s", rand(), i < 7 ? "," : "\n" }' >"$work/eight.csv"
fit 2 "$work/eight.csv" "$work/none.hollow" --decorrelate on
refused "$work/none.hollow" "at least two rows per column are needed"

# All kinds of models, and validation rows of one's own.
for kind in nice realnvp maf iaf naf; do
    fit 0 "$data" "$work/$kind.hollow" --model $kind --flows 2 --iters 100 --valid "$three"
    stderr_has "400 training rows, 400 validation rows"
    expect 0 logp "$work/$kind.hollow" "$data" --out "$work/kind.csv"
    expect 0 sample "$work/$kind.hollow" -n 5
done
fit 0 "$data" "$work/npyvalid.hollow" --valid "$work/s.npy"

# ---- context ----

fit 0 "$three" "$work/c.hollow" --context side
stderr_has "2 columns conditional on the context"
expect 0 logp "$work/c.hollow" "$three"
numbers 400
cp "$out" "$work/c.txt"
expect 0 logp "$work/c.hollow" "$work/turned.csv"
same "$out" "$work/c.txt"
expect 2 sample "$work/c.hollow" -n 5
stderr_has "the model has a context; provide it with --context FILE"
expect 2 sample "$model" -n 5 --context "$three"
stderr_has "the model has no context"
printf 'side\n1\n-1\n1\n' >"$work/side.csv"
printf 'who,side\nx,1\ny,-1\nz,1\n' >"$work/who.csv"
expect 0 sample "$work/c.hollow" --context "$work/who.csv"
cp "$out" "$work/who.txt"
expect 0 sample "$work/c.hollow" --context "$work/side.csv"
same "$out" "$work/who.txt"
if [ "$(wc -l <"$out")" = 4 ]; then pass; else fail "$command: not a row for each of the context's"; fi
expect 2 sample "$work/c.hollow" --context "$work/side.csv" -n 4
stderr_has "3 rows for 4 samples"
# Texts: columns of 0 and 1, so the same numbers as from these.
awk -F, -v OFS=, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "side") s = i } { $s = NR == 1 ? "side" : $s > 0 ? "up" : "down, 7" ; if (NR > 1 && $s != "up") $s = "\"" $s "\"" } 1' "$three" >"$work/text.csv"
fit 0 "$work/text.csv" "$work/text.hollow" --context side --members mixture --valid "$work/text.csv"
expect 0 logp "$work/text.hollow" "$work/text.csv"
numbers 400
expect 0 info "$work/text.hollow"
stdout_has "name side, labels down, 7 up"
printf 'side\nup\n"down, 7"\n' >"$work/texts.csv"
expect 0 sample "$work/text.hollow" --context "$work/texts.csv"
printf 'side\nup\nleft\n' >"$work/texts.csv"
expect 2 sample "$work/text.hollow" --context "$work/texts.csv"
stderr_has "texts.csv:3: column 'side': 'left' is not a category of the model; categories are: down, 7, up"
expect 0 logp "$work/text.hollow" "$work/text.csv"
(sed 1q "$work/text.csv" | sed 's/$/,logp/' && sed 1d "$work/text.csv" | paste -d, - "$out") >"$work/expected.csv"
expect 0 logp "$work/text.hollow" "$work/text.csv" --append
same "$out" "$work/expected.csv"
expect 2 sample "$work/c.hollow" --context "$data"
stderr_has "no column 'side'"
fit 2 "$data" "$work/none.hollow" --context a,b
refused "$work/none.hollow" "all columns are given by --context"
fit 2 "$data" "$work/none.hollow" --columns a --weights a
refused "$work/none.hollow" "all columns are given by --weights"
fit 2 "$data" "$work/none.hollow" --bounds 'a=1e9:'
refused "$work/none.hollow" "$data:2: training row 1, column 'a'"
awk -F, 'NR == 17 { $1 = 99 } { print $1 "," $2 }' "$data" >"$work/outside.csv" # by its place in the right file
fit 2 "$work/outside.csv" "$work/none.hollow" --bounds 'a=:90' --valid "$data"
refused "$work/none.hollow" "outside.csv:17: training row 16, column 'a' is 99"
fit 2 "$data" "$work/none.hollow" --bounds 'a=:90' --valid "$work/outside.csv"
refused "$work/none.hollow" "outside.csv:17: validation row 16, column 'a' is 99"
fit 2 "$data" "$work/none.hollow" --context nobody
refused "$work/none.hollow" "nobody"
fit 2 "$three" "$work/none.hollow" --context side --exclude side
refused "$work/none.hollow" "column 'side' is both selected and excluded"
# The context is looked up in the file: --columns need not have it, and numbers are those of the file.
fit 0 "$three" "$work/c2.hollow" --columns a,b --context side
same "$work/c2.hollow" "$work/c.hollow"
fit 0 "$three" "$work/c2.hollow" --columns a,b --context 3
same "$work/c2.hollow" "$work/c.hollow"
fit 0 "$three" "$work/c2.hollow" --columns side,a,b --context side
same "$work/c2.hollow" "$work/c.hollow"
# Without names, columns stay where they are when the first is the context.
fit 0 "$work/bare.csv" "$work/bare.hollow" --context 1
expect 0 logp "$work/bare.hollow" "$work/bare.csv"
cp "$out" "$work/bare.txt"
(echo "x1,x2,x3" && cat "$work/bare.csv") >"$work/named.csv"
expect 0 logp "$work/bare.hollow" "$work/named.csv"
same "$out" "$work/bare.txt"

# ---- weights ----

awk -F, 'NR == 1 { print $0 ",w" } NR > 1 { print $0 "," (NR % 2) }' "$data" >"$work/weighted.csv"
fit 0 "$work/weighted.csv" "$work/w.hollow" --weights w
stderr_has "360 training rows, 40 validation rows, 2 columns"
fit 0 "$work/weighted.csv" "$work/w2.hollow" --columns a,b --weights 3 # found in the file
same "$work/w2.hollow" "$work/w.hollow"
fit 0 "$work/weighted.csv" "$work/w2.hollow" --weights w --valid "$work/weighted.csv"
fit 2 "$work/weighted.csv" "$work/none.hollow" --weights b
refused "$work/none.hollow" "it must be 0 or more"
awk -F, 'NR == 17 { $3 = -2 } { print $1 "," $2 "," $3 }' "$work/weighted.csv" >"$work/negative.csv" # by its place in the file
fit 2 "$work/negative.csv" "$work/none.hollow" --weights w
refused "$work/none.hollow" "negative.csv:17: --weights w: the weight of this training row is -2"
fit 2 "$work/weighted.csv" "$work/none.hollow" --weights w --valid "$work/negative.csv"
refused "$work/none.hollow" "negative.csv:17: --weights w: the weight of this validation row is -2"
fit 2 "$work/weighted.csv" "$work/none.hollow" --weights w --context w
refused "$work/none.hollow" "column 'w' is given both by --context and by --weights"

# ---- calibration, tolerances, integers ----

expect 0 logp "$model" "$data" --calibrate
stdout_has "tolerance"
stdout_has "1e-06"
expect 2 logp "$model" "$data" --calibrate --out "$work/never"
expect 0 calibrate "$model" "$data" -o "$work/calibrated.hollow"
stdout_has "evaluations per row"
expect 0 info "$work/calibrated.hollow"
stdout_has "typical_error "
expect 0 logp "$work/calibrated.hollow" "$data"
expect 0 calibrate "$model" "$data" --accuracy 1e-3 --json
expect 2 calibrate "$model" "$data" -o "$model"
absent "$work/never"
expect 0 logp "$model" "$data" --rtol 1e-3 --atol 1e-3 --solver tsit5
numbers 400
expect 2 logp "$model" "$data" --solver nonsense
stderr_has "unknown ODE method 'nonsense'"
stdout_empty
awk -F, 'NR == 1 { print "n,b" } NR > 1 { printf "%d,%s\n", 3 * $1, $2 }' "$data" >"$work/whole.csv"
fit 0 "$work/whole.csv" "$work/whole.hollow"
stderr_has "column 'n' has integer values: uniform noise"
expect 0 sample "$work/whole.hollow" -n 50
if awk -F, 'NR > 1 && $1 != int($1) { exit 1 }' "$out"; then pass; else fail "$command: not rounded"; fi
fit 0 "$work/whole.csv" "$work/whole.hollow" --keep-steps
stderr_has "warning: column 'n' has integer values, so the likelihood is unbounded; without --keep-steps"
fit 2 "$work/whole.csv" "$work/none.hollow" --keep-steps --dequantize
refused "$work/none.hollow" "contradict each other"
fit 0 "$work/whole.csv" "$work/whole.hollow" --dequantize
if grep -q warning "$err"; then fail "$command: a warning"; else pass; fi
awk 'NR == 1 { print "t,b"; next } { split($0, f, ","); printf "%.1f,%s\n", f[1] / 3, f[2] }' "$data" >"$work/tied.csv"
fit 0 "$work/tied.csv" "$work/tied.hollow"
stderr_has "column 't' has only 18 distinct values, on a grid: uniform noise of width one step is added"
if grep -q warning "$err"; then fail "$command: a warning"; else pass; fi
fit 0 "$work/tied.csv" "$work/tied.hollow" --keep-steps
stderr_has "warning: column 't' has only 18 distinct values, on a grid, so the likelihood is unbounded; without --keep-steps"

# Data that give a bad model are named: a value far from the others, columns that depend on each other. Heavy tails are not.
(cat "$data" && echo "1e8,5") >"$work/far.csv"
fit 0 "$work/far.csv" "$work/far.hollow"
stderr_has "warning: $work/far.csv:402: column 'a': 1e+08 is far from the other values, half of which are in"
awk 'BEGIN { srand(2); print "a,b"; for (i = 0; i < 400; i++) printf "%.6f,%.6f\n", rand(), i == 77 ? 1e8 : rand() < 0.9 ? 0 : rand() }' >"$work/zeros.csv"
fit 0 "$work/zeros.csv" "$work/zeros.hollow"
stderr_has "warning: $work/zeros.csv:79: column 'b': 1e+08 is far from the other values"
stderr_has "asinh"
awk 'BEGIN { srand(7); print "heavy"; for (i = 0; i < 10000; i++) { s = 0
    for (k = 0; k < 4; k++) { z[k] = sqrt(-2 * log(1 - rand())) * cos(6.283185307 * rand()); s += k ? z[k] * z[k] : 0 }
    printf "%.9g\n", z[0] / sqrt(s / 3) } }' >"$work/heavy.csv"
fit 0 "$work/heavy.csv" "$work/heavy.hollow"
if grep -q warning "$err"; then fail "$command: a warning"; else pass; fi
awk -F, 'NR == 1 { print $0 ",twice" } NR > 1 { print $0 "," 2 * $2 }' "$data" >"$work/twice.csv"
fit 0 "$work/twice.csv" "$work/twice.hollow"
stderr_has "warning: column 'twice' is a linear function of 'b': the rows lie in a subspace, so the likelihood is unbounded"
awk -F, 'NR == 1 { print $0 ",sum" } NR > 1 { printf "%s,%.9g\n", $0, $1 + 0.01 * $2 }' "$three" >"$work/sum.csv"
fit 0 "$work/sum.csv" "$work/sum.hollow"
stderr_has "warning: column 'sum' is a linear function of 'a', 'b': "
fit 0 "$work/sum.csv" "$work/sum.hollow" --context sum
stderr_has "is a linear function of"
fit 0 "$work/sum.csv" "$work/sum.hollow" --columns a,b,side
if grep -q warning "$err"; then fail "$command: a warning"; else pass; fi
# Strong correlations are taken out before the flow, and log-densities and samples have them again.
awk 'BEGIN { srand(11); print "a,b"; for (i = 0; i < 2000; i++) { u = sqrt(-2 * log(1 - rand())); v = 6.283185307 * rand()
    printf "%.12g,%.12g\n", 1000 + u * cos(v), 1e-6 * (u * cos(v) + 0.001 * u * sin(v)) } }' >"$work/narrow.csv"
fit 0 "$work/narrow.csv" "$work/narrow.hollow"
expect 0 info "$work/narrow.hollow"
stdout_has "decorrelated   yes"
expect 0 logp "$work/narrow.hollow" "$work/narrow.csv" # 1 + log(2 pi) - 9 log(10) = -17.885 is true
if awk '{ s -= $1 } END { exit !(s / NR > -17.95 && s / NR < -17.8) }' "$out"; then pass; else fail "$command: not the density of a narrow normal"; fi
expect 0 sample "$work/narrow.hollow" -n 500
if awk -F, 'NR > 1 { d = ($2 / 1e-6 - ($1 - 1000)) / 0.001; s += d * d } END { s /= NR - 1; exit !(s > 0.7 && s < 1.4) }' "$out"; then pass; else fail "$command: samples without their correlation"; fi
fit 0 "$work/narrow.csv" "$work/wide.hollow" --decorrelate off --iters 100
expect 0 info --json "$work/wide.hollow"
json "$out" 'j["decorrelated"] == False'
fit 0 "$data" "$work/on.hollow" --decorrelate on
expect 0 info --json "$work/on.hollow"
json "$out" 'j["decorrelated"] == True'
# Where nothing that training found is better, the model is the normal distribution of the columns.
normal() {
    awk -v n="$1" -v seed="$2" 'BEGIN { srand(seed); print "a,b"; for (i = 0; i < n; i++) {
        u = sqrt(-2 * log(1 - rand())); v = 6.283185307 * rand(); printf "%.9g,%.9g\n", u * cos(v), u * sin(v) } }'
}
normal 200 5 >"$work/normal.csv"
normal 500 6 >"$work/fresh.csv"
fit 0 "$work/normal.csv" "$work/normal.hollow" --valid "$work/fresh.csv" --lr 0.002 --conditioner made
stderr_has "better than a normal distribution"
expect 0 info "$work/normal.hollow"
stdout_has "but a normal distribution is better"
expect 0 logp "$work/normal.hollow" "$work/fresh.csv" # 1 + log(2 pi) = 2.838, and what 500 rows differ from it
if awk '{ s -= $1 } END { exit !(s / NR > 2.7 && s / NR < 2.98) }' "$out"; then pass; else fail "$command: not a normal density"; fi
fit 0 "$data" "$work/quiet.hollow" --jitter 0
expect 0 info "$work/quiet.hollow"
stdout_has " jitter 0 "
expect 0 info "$model"
stdout_has " jitter 0.29999999999999999 "
# Far rows have large log-densities, which are not written out digit by digit.
printf 'a,b\n1e30,1\n2e30,1\n' >"$work/away.csv"
expect 0 logp "$model" "$work/away.csv"
if grep -qE '^mean log p -[0-9.]+e\+[0-9]+ \+- [0-9.]+e\+[0-9]+ nats over 2 rows$' "$err"; then pass; else fail "$command: $(cat "$err")"; fi

# ---- info ----

expect 0 info "$model"
stdout_has "m.hollow: a density model"
stdout_has "kind           cnf"
stdout_has ", typical_error "
stdout_has "transformer.0.weight_h"
stderr_empty
expect 0 info --json "$work/c.hollow"
json "$out" 'j["kind"] == "cnf" and j["flows"] == 1 and [c["name"] for c in j["columns"]] == ["a", "b", "side"]'
json "$out" '[c["context"] for c in j["columns"]] == [False, False, True] and abs(j["columns"][0]["mean"] - 10) < 0.2'
json "$out" 'all(sum(p["values"] - p["masked"] for p in n["parameters"]) == n["trainable"] for n in j["networks"])'
json "$out" 'j["solver"]["evaluations"] > 0 and "best iteration" in j["note"]'
expect 0 info --json "$work/nice.hollow"
json "$out" 'j["kind"] == "nice" and j["flows"] == 2 and len(j["networks"]) == 3'
expect 0 info "$work/maf.hollow"
stdout_has "name conditioner."

# ---- wrong data ----

none=$work/none.hollow
: >"$work/empty.csv"
fit 2 "$work/empty.csv" "$none"
refused "$none" "empty.csv"
echo "a,b" >"$work/header.csv"
fit 2 "$work/header.csv" "$none"
refused "$none" "header.csv"
head -n 2 "$data" >"$work/row.csv"
fit 2 "$work/row.csv" "$none"
refused "$none" "row.csv"
(cat "$data" && echo "1,2,3") >"$work/ragged.csv"
fit 2 "$work/ragged.csv" "$none"
refused "$none" "ragged.csv:402"
(cat "$data" && echo "1,many") >"$work/text.csv"
fit 2 "$work/text.csv" "$none"
refused "$none" "text.csv:402" "column 'b'" "many"
awk -F, 'NR == 1 { print "a,same" } NR > 1 { print $1 ",7.5" }' "$data" >"$work/constant.csv"
fit 2 "$work/constant.csv" "$none"
refused "$none" "constant.csv: column 'same' (7.5) is constant" "--drop-constant"
fit 0 "$work/constant.csv" "$work/one.hollow" --columns a
fit 0 "$work/constant.csv" "$work/dropped.hollow" --drop-constant # the same model, to the byte
stderr_has "column 'same' is constant and not used"
same "$work/dropped.hollow" "$work/one.hollow"
fit 0 "$work/constant.csv" "$work/dropped.hollow" --exclude same
same "$work/dropped.hollow" "$work/one.hollow"
awk -F, 'NR == 1 { print "p,a,q" } NR > 1 { print "1," $1 ",2" }' "$data" >"$work/constants.csv" # all are named at once
fit 2 "$work/constants.csv" "$none"
refused "$none" "columns 'p' (1), 'q' (2) are constant"
fit 0 "$work/constants.csv" "$work/dropped.hollow" --drop-constant --context q
same "$work/dropped.hollow" "$work/one.hollow"
fit 2 "$work/constants.csv" "$none" --columns p,q --drop-constant
refused "$none" "all columns are constant; there is nothing to model"
fit 2 "$work/constants.csv" "$none" --exclude 1-3
refused "$none" "all columns are excluded"
fit 2 "$work/constants.csv" "$none" --exclude nobody
refused "$none" "there is no column 'nobody'"
for scale in 1e200 1e-170; do # whose squares are no numbers
    awk -F, -v scale=$scale 'NR == 1 { print "a,wild" } NR > 1 { printf "%s,%.9g\n", $1, $2 * scale }' "$data" >"$work/wild.csv"
    fit 2 "$work/wild.csv" "$none"
    case $scale in 1e200) size=large ;; *) size=small ;; esac
    refused "$none" "wild.csv: column 'wild' is too $size: " "rescale it"
done
(cat "$data" && echo "1,1e190") >"$work/wild.csv"
fit 2 "$work/wild.csv" "$none"
refused "$none" "wild.csv: column 'b' is too large" "1e+190; rescale it"
fit 2 "$model" "$none"
refused "$none" "m.hollow: a model or checkpoint of hollow (safetensors), not a table"
expect 2 logp "$model" "$model"
stderr_has "not a table"
for value in nan inf -inf "" NA; do
    (cat "$data" && echo "1,$value") >"$work/missing.csv"
    fit 2 "$work/missing.csv" "$none"
    refused "$none" "missing.csv:402" "column 'b'"
    expect 2 logp "$model" "$work/missing.csv"
    stderr_has "missing.csv:402"
    stdout_empty
    expect 2 logp "$model" "$work/missing.csv" --out "$work/never.csv"
    absent "$work/never.csv"
done
fit 0 "$work/missing.csv" "$work/dropped.hollow" --drop-missing
stderr_has "skipped 1 rows with missing values"
same "$work/dropped.hollow" "$model"
expect 0 logp "$model" "$work/missing.csv" --drop-missing
same "$out" "$work/logp.txt"
fit 2 "$work/absent.csv" "$none"
refused "$none" "absent.csv" "No such file or directory"
fit 2 "$work" "$none"
refused "$none" "Is a directory"
fit 2 "$data" "$none" --valid "$work/whole.csv"
refused "$none" "whole.csv: there is no column 'a'"
fit 2 "$data" "$none" --columns nobody
refused "$none" "nobody"
expect 2 logp "$model" "$work/whole.csv"
stderr_has "whole.csv: there is no column 'a'; the file has "
stdout_empty
expect 2 logp "$model" "$work/bare.csv"
stderr_has "bare.csv: the file has 3 columns without names, but 2 are needed"

# ---- wrong models ----

head -c 500 "$model" >"$work/cut.hollow"
echo "not a model at all, but some words" >"$work/words.hollow"
"$hollow" paper fig1 --quick --out "$work/fig1" >/dev/null 2>&1
for wrong in "$work/absent.hollow" "$work/cut.hollow" "$work/words.hollow" "$data" "$work" "$work/fig1/fig1.hollow"; do
    expect 2 logp "$wrong" "$data"
    stderr_has "$wrong"
    stdout_empty
    expect 2 sample "$wrong" --out "$work/never.csv"
    stderr_has "$wrong"
    absent "$work/never.csv"
done
stderr_has "a network, not a density model (its format is 'hollow-net 1')"

# ---- wrong calls, and outputs that cannot be written ----

expect 2 fit "$data"
stderr_has "-o MODEL is required"
expect 2 fit "$data" -o "$none" --nonsense
stderr_has "unknown option '--nonsense'"
expect 2 fit "$data" -o "$none" --model gan
stderr_has "unknown model 'gan'; use one of cnf, nice, realnvp, maf, iaf, naf"
fit 2 "$data" "$none" --solver nonsense
refused "$none" "unknown ODE method 'nonsense'"
fit 2 "$data" "$none" --model maf --conditioner tree
refused "$none" "option 'conditioner' has no effect with model=maf; it is for model=cnf"
fit 2 "$data" "$none" --model maf --transport on
refused "$none" "option 'transport' has no effect with model=maf; it is for model=cnf"
fit 2 "$data" "$none" --lr 0
refused "$none" "--lr"
fit 2 "$data" "$none" --model maf --loss flow-matching
refused "$none" "flow matching is for continuous flows"
fit 0 "$data" "$work/late.hollow" --resume --iters 3 # nothing to go on from: from the beginning; and then it is finished
stderr_has "--resume: there is no checkpoint $work/late.hollow.ckpt; training starts from the beginning"
cp "$work/late.hollow" "$work/late"
fit 2 "$data" "$work/late.hollow" --resume --iters 3
stderr_has "--resume: there is no checkpoint $work/late.hollow.ckpt, but the model $work/late.hollow exists: the run is finished"
same "$work/late.hollow" "$work/late"
fit 2 "$data" "$work/nowhere/m.hollow"
stderr_has "nowhere/m.hollow"
fit 2 "$data" "$work"
stderr_has "Is a directory"
cp "$data" "$work/precious.csv"
fit 2 "$work/precious.csv" "$work/precious.csv"
stderr_has "the output would replace the input"
for call in "fit $data -o $none --log $data" "logp $model $data --out $data" "logp $model $data --out $model" "sample $model --out $model"; do
    # shellcheck disable=SC2086
    expect 2 $call
    stderr_has "the output would replace the input"
done
fit 2 "$data" "$none" --log "$none"
stderr_has "are the same file; use different output files"
fit 2 "$data" "$none" --trace hutchinson --solver auto
refused "$none" "auto needs the system's jvp"
same "$work/precious.csv" "$data"
fit 2 "$data" "$none" --log "$work/nowhere/log"
refused "$none" "nowhere/log"
fit 2 "$data" "$none" --plot "$data/plot"
refused "$none" "Not a directory"
expect 2 logp "$model" "$data" --out "$work/nowhere/x.csv"
stderr_has "nowhere/x.csv"
expect 2 sample "$model" --out "$work/nowhere/x.csv"
stderr_has "nowhere/x.csv"
expect 2 sample "$model" -n 0
if [ "$(id -u)" != 0 ]; then
    mkdir "$work/closed"
    chmod 555 "$work/closed"
    fit 2 "$data" "$work/closed/m.hollow"
    stderr_has "Permission denied"
fi
if [ -e /dev/full ]; then
    "$hollow" logp "$model" "$data" >/dev/full 2>"$err"
    if [ $? = 2 ]; then pass; else fail "logp: a full disk goes unnoticed"; fi
    "$hollow" sample "$model" >/dev/full 2>"$err"
    if [ $? = 2 ]; then pass; else fail "sample: a full disk goes unnoticed"; fi
fi

# ---- training that fails ----

fit 1 "$data" "$none" --model iaf --optimizer sgd --lr 10 --iters 400
stderr_has "hollow fit: iteration "
stderr_has "not finite"
stderr_has "try a smaller --lr"
fit 1 "$data" "$work/failed.hollow" --model realnvp --optimizer sgd --lr 10
stderr_has "worse than a normal distribution"
stderr_has "try a smaller --lr"
# The rate rises: a good model first, steps that only grow then. (Chaotic runs would end differently on different machines.)
fit 1 "$data" "$work/away.hollow" --loss nll --optimizer sgd --lr 3 --warmup 60
stderr_has "training diverged: the loss at iteration "
stderr_has "the best model before is kept; try a smaller --lr"
file_there "$work/away.hollow"
# Without an iteration by likelihood there is no loss of which to say that it diverged, however small the units are.
awk -F, 'NR == 1 { print } NR > 1 { printf "%.9g,%.9g\n", $1 * 1e-30, $2 * 1e-30 }' "$data" >"$work/tiny.csv"
fit 0 "$work/tiny.csv" "$work/tiny.hollow" --loss flow-matching
# Patience is for the last loss: flow matching, of 40 iterations here, goes on however bad it is.
command="hollow fit --patience 1 --lr 3"
# shellcheck disable=SC2086
"$hollow" fit "$data" -o "$work/tired.hollow" $small --lr 3 --patience 1 --log "$work/tired.log" >"$out" 2>"$err"
if [ "$(wc -l <"$work/tired.log")" -ge 40 ]; then pass; else fail "$command: it stops while matching"; fi
# Validation still improves after so few iterations; --iters alone is exact.
fit 0 "$data" "$work/longer.hollow" --extensions 2 --log "$work/longer.log"
stderr_has "the schedule was extended twice, to 120 iterations, as validation was still improving"
if [ "$(wc -l <"$work/longer.log")" -eq 120 ]; then pass; else fail "$command: not 120 iterations"; fi
fit 0 "$data" "$work/longer.hollow" --log "$work/longer.log"
if grep -q "extended" "$err"; then fail "$command: extended"; else pass; fi
# The default flow of one column is small; alone it is larger.
awk 'BEGIN { srand(7); for (i = 0; i < 400; i++) { u = -log(1 - rand()); printf "%.9g\n", i % 3 ? u : 5 + u * u } }' >"$work/one.csv"
expect 0 fit "$work/one.csv" -o "$work/one.hollow" --threads 1 --minutes 1e-9
expect 0 info "$work/one.hollow"
stdout_has "iters 500 batch 256 "
stdout_has "hidden 16x1 features 4 transformer 32x2"
expect 0 fit "$work/one.csv" -o "$work/one.hollow" --threads 1 --minutes 1e-9 --members flow
expect 0 info "$work/one.hollow"
if grep -q "hidden 16x1 features 4" "$out"; then fail "$command: as beside mixtures"; else pass; fi
# Shapes of images.
fit 2 "$data" "$none" --conditioner conv --image 2x
stderr_has "image: '2x' is not of the form HEIGHTxWIDTH or CHANNELSxHEIGHTxWIDTH"
for image in 1x2 2x1x1; do
    expect 0 fit "$data" -o "$work/image.hollow" --members flow --conditioner conv --image $image --iters 2 --hidden 4 --threads 1
    expect 0 info "$work/image.hollow"
    case $image in 1x2) stdout_has "image 1x1x2 " ;; *) stdout_has "image 2x1x1 " ;; esac
done
# More iterations of a flow that is not in the model would change nothing.
awk 'BEGIN { srand(5); for (i = 0; i < 600; i++) { k = i % 6; u = sqrt(-2 * log(1 - rand())); v = 6.283185307 * rand()
    printf "%.9g,%.9g\n", (k * 7) % 6 + 0.1 * u * cos(v), (k * k) % 5 + 0.1 * u * sin(v) } }' >"$work/clusters.csv"
expect 0 fit "$work/clusters.csv" -o "$work/clusters.hollow" --iters 20 --threads 1 --members flow
stderr_has "validation was still improving at the last iteration"
expect 0 fit "$work/clusters.csv" -o "$work/clusters.hollow" --iters 20 --threads 1
stderr_has "so the model has no flow"
if grep -q "still improving" "$err"; then fail "$command: advises more iterations of a flow that is dropped"; else pass; fi
fit 0 "$data" "$work/minute.hollow" --minutes 1e-9
stderr_has "before the first validation"

# ---- stopped and killed, and going on ----

long="--iters 4000 --batch 64 --hidden 8 --width 8 --features 4 --layers 1 --ode-steps 4 --threads 1 --patience 1000"
# shellcheck disable=SC2086
expect 0 fit "$data" -o "$work/whole.hollow" $long
whole=$work/whole.hollow

# kill -9 some time after the first checkpoint.
killed=$work/killed.hollow
# shellcheck disable=SC2086
killed_after_checkpoint "$killed" fit "$data" $long --save-every 0.1 --log "$work/killed.log"
command="hollow fit, killed, and --resume"
absent "$killed"
file_there "$killed.ckpt"
# shellcheck disable=SC2086
expect 2 fit "$data" -o "$killed" $long --resume --lr 0.02
stderr_has "the checkpoint has other settings or data: it has 'lr 0.01"
stderr_has "', this run has 'lr 0.02'" # the first that differs, alone
# shellcheck disable=SC2086
expect 2 fit "$work/tied.csv" -o "$killed" $long --resume
stderr_has "other settings or data"
cp "$killed.ckpt" "$work/kept"
head -c 600 "$work/kept" >"$killed.ckpt"
# shellcheck disable=SC2086
expect 2 fit "$data" -o "$killed" $long --resume
stderr_has "$killed.ckpt"
absent "$killed"
cp "$work/kept" "$killed.ckpt"
# shellcheck disable=SC2086
expect 0 fit "$data" -o "$killed" $long --resume --log "$work/killed.log"
if grep -o '"iteration": [0-9]*' "$work/killed.log" | awk '$2 != NR { bad = 1 } END { exit bad || NR != 4000 }'; then
    pass
else
    fail "$command: the log does not have each iteration once"
fi
same "$killed" "$whole"
absent "$killed.ckpt"

if [ -d /proc/self ]; then
    # In the middle of a solve, too: tolerances that no solver reaches.
    (head -n 1 "$data" && for i in 1 2 3 4 5; do sed 1d "$data"; done) >"$work/many.csv"
    interrupted logp "$model" "$work/many.csv" --rtol 1e-15 --atol 1e-30 --threads 1 --out "$work/never.csv"
    absent "$work/never.csv"
    # shellcheck disable=SC2086
    interrupted fit "$data" -o "$work/stopped.hollow" $long --iters 400000 --members flow --log "$work/stopped.log"
    stderr_has "stopped.hollow.ckpt is written; run the same command with --resume to continue"
    stdout_empty
    absent "$work/stopped.hollow"
    file_there "$work/stopped.hollow.ckpt"
    # shellcheck disable=SC2086
    interrupted fit "$data" -o "$work/stopped.hollow" $long --iters 400000 --members flow --log "$work/stopped_again.log"
    stderr_has "warning: the checkpoint $work/stopped.hollow.ckpt of an earlier run will be replaced"
fi

finish test_cli_density
