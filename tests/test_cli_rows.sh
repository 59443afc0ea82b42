#!/bin/sh
# test_cli_rows.sh PROGRAM - hollow logp and sample: rows appended, the least likely, parts, JSON, wrong arguments.
set -u
. "$(dirname "$0")/cli_support.sh"
small="--members flow --iters 20 --batch 64 --hidden 8 --width 8 --features 4 --layers 1 --threads 1"
data=$work/data.csv
(echo "a,b" && awk 'BEGIN { srand(3); for (i = 0; i < 101; i++) {
    u = sqrt(-2 * log(1 - rand())); v = 6.283185307 * rand(); x = u * cos(v); y = u * sin(v)
    printf "%.9g,%.9g\n", x, 0.5 * y + x * x } }') >"$data"
model=$work/m.hollow
# shellcheck disable=SC2086
expect 0 fit "$data" -o "$model" $small
# shellcheck disable=SC2086
expect 0 fit "$data" -o "$work/conditional" --context b $small
expect 0 logp "$model" "$data"
cp "$out" "$work/logp"
stderr_has "mean log p"
expect 0 logp "$model" "$data" --quiet
stderr_empty
same "$out" "$work/logp"

# ---- rows with their log-density ----

expect 0 logp "$model" "$data" --append
(sed 1q "$data" | sed 's/$/,logp/' && sed 1d "$data" | paste -d, - "$work/logp") >"$work/expected"
same "$out" "$work/expected"
expect 0 logp "$model" "$data" --append --out "$work/appended.csv"
same "$work/appended.csv" "$work/expected"
expect 2 logp "$model" "$work/appended.csv" --append
stderr_has "the file already has a column 'logp'; remove it with --columns"
expect 0 logp "$model" "$work/appended.csv" --append --columns b,a
stdout_has "b,a,logp"
expect 0 logp "$model" - --append <"$data"
same "$out" "$work/expected"

# Columns that the model does not have are copied, texts as well, and empty ones. A column of the model must be numbers.
awk -F, -v OFS=, 'NR == 1 { print "day", $1, "name", $2; next }
    { print "2024-01-" NR % 9, $1, NR == 2 ? "" : NR % 3 ? "\"x, \"\"y\"\"\"" : "NA", $2 }' "$data" >"$work/texts.csv"
expect 0 logp "$model" "$work/texts.csv"
same "$out" "$work/logp"
(sed 1q "$work/texts.csv" | sed 's/$/,logp/' && sed 1d "$work/texts.csv" | paste -d, - "$work/logp") >"$work/expected"
expect 0 logp "$model" "$work/texts.csv" --append
same "$out" "$work/expected"
expect 0 logp "$model" "$work/texts.csv" --worst 1
stdout_has "row,logp,day,a,name,b"
stdout_has ",2024-01-"
expect 0 logp "$model" "$work/texts.csv" --worst 1 --json
json "$out" 'j["worst"][0]["day"].startswith("2024-01-") and isinstance(j["worst"][0]["b"], float)'
expect 2 logp "$model" "$work/texts.csv" --append --out "$work/texts.npy"
stderr_has "npy files contain numbers only, but column 'day' contains text; write csv"
absent "$work/texts.npy"
awk -F, -v OFS=, 'NR == 2 { $2 = "" } 1' "$work/texts.csv" >"$work/hole.csv"
expect 2 logp "$model" "$work/hole.csv" --append
stderr_has "hole.csv:2: column 'a'"
expect 0 logp "$model" "$work/hole.csv" --append --drop-missing
sed 2d "$work/expected" >"$work/dropped"
same "$out" "$work/dropped"

# ---- the least likely ----

expect 0 logp "$model" "$data" --worst 5
(echo row,logp,a,b && sed 1d "$data" | paste -d, "$work/logp" - | awk '{ print NR "," $0 }' | LC_ALL=C sort -t, -k2,2g | head -5) >"$work/expected"
same "$out" "$work/expected"
expect 0 logp "$model" "$data" --worst 5 --json
json "$out" 'len(j["worst"]) == 5 and j["worst"][0]["logp"] <= j["worst"][1]["logp"] and j["rows"] == 101 and "a" in j["worst"][4]'
expect 0 logp "$model" "$data" --worst 1000
if [ "$(wc -l <"$out")" = 102 ]; then pass; else fail "$command: not all rows"; fi
expect 2 logp "$model" "$data" --worst 5 --append
stderr_has "--worst prints rows"
expect 2 logp "$model" "$data" --worst 5 --calibrate
stderr_has "--calibrate prints a table"

# ---- parts: one after another they are the whole ----

for parts in 1 3 7 150; do
    : >"$work/together"
    : >"$work/together_rows"
    for k in $(seq $parts); do
        "$hollow" logp "$model" "$data" --part "$k/$parts" --threads 1 >>"$work/together" 2>/dev/null
        "$hollow" logp "$model" "$data" --part "$k/$parts" --append --threads 1 --out "$work/one.csv" 2>/dev/null
        cat "$work/one.csv" >>"$work/together_rows"
    done
    command="hollow logp --part, $parts parts"
    same "$work/together" "$work/logp"
    same "$work/together_rows" "$work/appended.csv"
done
for part in 0/3 4/3 1 1/ /2 a/b 1/2x -1/2 1/0 ''; do
    expect 2 logp "$model" "$data" "--part=$part"
    stdout_empty
done
expect 0 sample "$model" -n 30
cp "$out" "$work/whole"
expect 0 sample "$model" -n 11
cp "$out" "$work/together"
expect 0 sample "$model" -n 12 --first 11
cat "$out" >>"$work/together"
expect 0 sample "$model" -n 7 --first 23
cat "$out" >>"$work/together"
same "$work/together" "$work/whole"
expect 0 sample "$work/conditional" --context "$data"
cp "$out" "$work/whole"
expect 0 sample "$work/conditional" --context "$data" -n 40
cp "$out" "$work/together"
expect 0 sample "$work/conditional" --context "$data" --first 40
cat "$out" >>"$work/together"
same "$work/together" "$work/whole"
expect 2 sample "$work/conditional" --context "$data" -n 40 --first 62
stderr_has "101 rows for 102 samples"
expect 2 sample "$work/conditional" --context "$data" --first 102
stderr_has "101 rows for 102 samples"

# ---- JSON ----

expect 0 logp "$model" "$data" --json
json "$out" 'len(j["logp"]) == 101 and j["rows"] == 101 and j["failed"] == 0 and abs(sum(j["logp"]) / 101 - j["mean_logp"]) < 1e-12 and j["standard_error"] > 0'
expect 0 logp "$model" "$data" --json --out "$work/l.npy"
json "$out" '"logp" not in j and j["file"].endswith("l.npy") and j["rows"] == 101'
expect 2 logp "$model" "$data" --json --append
stderr_has "--append with --json requires --out"
expect 0 logp "$model" "$data" --json --calibrate
json "$out" 'len(j["calibration"]) == 5 and j["calibration"][4]["largest_change"] == 0'
expect 0 sample "$model" -n 3 --json
json "$out" 'j["columns"] == ["a", "b"] and len(j["sample"]) == 3 and len(j["sample"][2]) == 2 and j["rows"] == 3'
expect 0 sample "$model" -n 3 --json --out "$work/s.csv"
json "$out" '"sample" not in j and j["file"].endswith("s.csv") and j["failed"] == 0'
expect 0 info "$model" --json
json "$out" 'j["bytes"] > 0'

# ---- rows outside of the bounds ----

# shellcheck disable=SC2086
expect 0 fit "$data" -o "$work/bounded" --bounds a=-9:9 $small --quiet
(cat "$data" && echo "10,1" && echo "-10,1") >"$work/outside.csv"
expect 0 logp "$work/bounded" "$work/outside.csv" --json
json "$out" 'j["infinite"] == 2 and j["mean_logp"] is None and j["standard_error"] is None and j["failed"] == 0'
stderr_has "outside.csv:103: column 'a': log p is -inf: 10 is above the model's bound 9"
stderr_has "mean log p -inf over 103 rows: log p of 2 rows is -inf"
expect 0 report "$work/bounded" "$work/outside.csv" --json --draws 200
json "$out" 'j["level"] == "wrong" and "2 of 103 rows, such as row 102, are impossible under the model" in j["verdict"] and j["over_normal"]["value"] is None'
expect 2 calibrate "$work/bounded" "$work/outside.csv"
stderr_has "outside.csv:103: column 'a': 10 is above the model's bound 9"

# ---- wrong arguments ----

for suffix in parquet npz xlsx tsv json CSV; do
    expect 2 sample "$model" --out "$work/s.$suffix"
    stderr_has "s.$suffix: unknown suffix; tables are written as .csv"
    expect 2 logp "$model" "$data" --out "$work/s.$suffix"
    absent "$work/s.$suffix"
done
mkdir "$work/dir.parquet"
for name in rows rows.txt rows.dat .hidden dir.parquet/rows; do
    expect 0 sample "$model" -n 5 --out "$work/$name"
    file_there "$work/$name"
done
expect 2 logp "$data" "$model"
stderr_has "$model is a model: give MODEL before DATA"
expect 2 logp "$data" "$data"
stderr_has "data.csv: "
(echo "name,b" && echo "x,1") >"$work/other.csv" # text, too
expect 2 logp "$model" "$work/other.csv"
stderr_has "other.csv: there is no column 'a'; the file has 2: name, b"
(echo "p,q" && echo "1,1") >"$work/other.csv"
expect 2 logp "$model" "$work/other.csv"
stderr_has "other.csv: there are no columns 'a', 'b'; the file has 2: p, q"

finish test_cli_rows
