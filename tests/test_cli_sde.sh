#!/bin/sh
# test_cli_sde.sh PROGRAM - hollow sde fit, sample, grid and eval on small tables: known equations, formats, bits, honest failures,
# wrong input, kill and Ctrl-C.
set -u
. "$(dirname "$0")/cli_support.sh"
small="--iters 200 --batch 64 --hidden 8 --components 2 --lr 5e-3 --threads 1"

# paths N START SEED: N trajectories of dx = -(x - 20) / 2 dt + 3 dW from N(START, 2^2) at 10 times 100..104, which START 20 lets
# almost stand still.
paths() {
    awk -v n="$1" -v start="$2" -v seed="$3" 'function normal() { return sqrt(-2 * log(1 - rand())) * cos(6.283185307 * rand()) }
    BEGIN { srand(seed); print "trajectory,t,x"; for (p = 0; p < n; p++) { x = start + (start == 20 ? 3 : 2) * normal(); for (k = 0; k < 10; k++) {
        printf "%d,%.9g,%.9g\n", p, 100 + 4 * k / 9, x
        a = exp(-2 / 9); x = 20 + a * (x - 20) + 3 * sqrt(1 - a * a) * normal() } } }'
}
# pendulum N: two columns, two modes, 11 times 0..5.
pendulum() {
    awk -v n="$1" 'function normal() { return sqrt(-2 * log(1 - rand())) * cos(6.283185307 * rand()) }
    BEGIN { srand(5); print "trajectory,t,p,v"; for (i = 0; i < n; i++) { p = (i % 2 ? 1 : -1) + 0.1 * normal(); v = 0.1 * normal(); for (k = 0; k < 21; k++) {
        printf "%d,%.9g,%.9g,%.9g\n", i, k / 4, p, v
        for (j = 0; j < 10; j++) { v -= 2 * sin(p) / 40; v += 0.2 * sqrt(1 / 40) * normal(); p += v / 40 } } } }'
}
# spin N: a round density that grows and turns, 16 times 0..1.5.
spin() {
    awk -v n="$1" 'function normal() { return sqrt(-2 * log(1 - rand())) * cos(6.283185307 * rand()) }
    BEGIN { srand(6); print "trajectory,t,x,y"; for (i = 0; i < n; i++) { x = 0.4 * normal(); y = 0.4 * normal(); for (k = 0; k < 16; k++) {
        printf "%d,%.9g,%.9g,%.9g\n", i, k / 10, x, y
        for (j = 0; j < 10; j++) { a = x + (x - 2 * y) / 100 + 0.05 * normal(); y += (2 * x + y) / 100 + 0.05 * normal(); x = a } } } }'
}
data=$work/data.csv
model=$work/m.hollow
none=$work/none.hollow
paths 200 40 1 >"$data"

# fit STATUS DATA MODEL OPTION ...: a small and fast training.
fit() {
    status=$1
    from=$2
    to=$3
    shift 3
    # shellcheck disable=SC2086
    expect "$status" sde fit "$from" -o "$to" $small "$@"
    stdout_empty
}
# refused TEXT ...: the last call said all this, and wrote nothing.
refused() {
    absent "$none"
    absent "$none.ckpt"
    for fragment; do stderr_has "$fragment"; done
    if [ "$(find "$work" -maxdepth 1 -name '.*' -type f | wc -l)" = 0 ]; then pass; else fail "$command: a temporary file is left"; fi
}
# close FILE LINE FIELD VALUE TOLERANCE: a number of a csv file.
close() {
    if awk -F, -v line="$2" -v field="$3" -v value="$4" -v tolerance="$5" 'NR == line { d = $field - value; ok = d < tolerance && -d < tolerance } END { exit !ok }' "$1"
    then pass; else fail "$command: line $2, field $3 is not near $4: $(sed -n "$2p" "$1")"; fi
}

# ---- help ----

for call in "sde" "sde --help" "sde -h" "sde help" "help sde"; do
    # shellcheck disable=SC2086
    expect 0 $call
    stdout_has "usage: hollow sde fit|sample|grid|eval"
    stderr_empty
done
for name in fit sample grid eval; do
    expect 0 sde $name --help
    stdout_has "usage: hollow sde $name"
    stdout_has "Options:"
    cp "$out" "$work/help"
    for call in "help sde" "sde help"; do
        # shellcheck disable=SC2086
        expect 0 $call $name
        same "$out" "$work/help"
    done
    expect 2 sde $name --nonsense
    stderr_has "hollow sde $name: unknown option '--nonsense'"
    stdout_empty
    expect 2 sde $name
    stderr_has "usage: hollow sde $name"
done
expect 2 sde nonsense
stderr_has "unknown command 'nonsense'; commands are fit, sample, grid, eval"

# ---- learning, by both methods ----

fit 0 "$data" "$model" --log "$work/log"
file_there "$model"
absent "$model.ckpt"
stderr_has "2000 observations, 1 columns, 200 trajectories"
stderr_has "ETA"
stderr_has " 200/200  mean |residual|"
stderr_has "m.hollow: contradicted; mean |residual|"
stderr_has "the density misses"
expect 0 sde eval "$model" "$data" --most-rows 1000 --rows 50 --groups 3
stderr_has "of 2000 rows: randomly chosen trajectories, or pieces of long ones (--most-rows)"
json "$work/log" '0 < j["iteration"] <= 200 and j["loss"] > 0 and j["nll"] == j["nll"] and 0 < j["lambda"] <= 0.1'
if [ "$(wc -l <"$work/log")" = 200 ]; then pass; else fail "$command: the log does not have 200 lines"; fi
fit 0 "$data" "$work/again.hollow" --threads 2
same "$model" "$work/again.hollow"
# shellcheck disable=SC2086
expect 0 sde fit "$data" -o "$work/again.hollow" $small --quiet --json
same "$model" "$work/again.hollow"
if grep -v "warning" "$err" | grep -q .; then fail "$command: not quiet"; else pass; fi
json "$out" 'j["method"] == "fp" and j["rows"] == 2000 and j["trajectories"] == 200 and j["components"] == 2 and j["iterations"] == 200'
json "$out" 'j["verdict"] == "contradicted" and "unexplained" in j["reasons"] and not any(f["fatal"] for f in j["findings"])'
fit 0 "$data" "$work/other.hollow" --seed 1
if cmp -s "$model" "$work/other.hollow"; then fail "$command: the same as with seed 0"; else pass; fi
printf 't,x\n100,40\n102,30\n103,25\n' >"$work/points.csv"
for method in fp pseudo-ml; do
    fit 0 "$data" "$work/$method.hollow" --method $method --iters 800
    expect 0 sde grid "$work/$method.hollow" "$work/points.csv"
    stderr_empty
    if [ "$(head -n 1 "$out")" = "f1,g1,logp" ] && [ "$(wc -l <"$out")" = 4 ]; then pass; else fail "$command: not a header and 3 rows"; fi
    close "$out" 2 1 -10 2.5
    close "$out" 3 1 -5 1.2
    close "$out" 3 2 3 1
    close "$out" 2 3 -1.6 0.3
done

fit 0 "$data" "$work/between.hollow" --between 0.5
if cmp -s "$model" "$work/between.hollow"; then fail "$command: the same as without"; else pass; fi
fit 2 "$data" "$none" --between 2
refused "--between: '2' is not a number in 0..1"
fit 0 "$data" "$work/pointwise.hollow" --pointwise --iters 100
stderr_has "the change of the density unexplained"
# How many Gaussians: as held-out rows choose; the data are one.
expect 0 sde fit "$data" -o "$work/chosen.hollow" --iters 100 --batch 64 --hidden 8 --threads 1
stderr_has "1 mixture component, chosen on held-out rows (--components)"
expect 0 info --json "$work/chosen.hollow"
json "$out" 'j["components"] == 1'
# Options of the other method.
for bad in "--lambda 1" "--between 0" "--penalty l2" "--p-form" "--stop-gradient" "--pointwise" "--anyway"; do
    # shellcheck disable=SC2086
    fit 2 "$data" "$none" --method pseudo-ml $bad
    name=${bad%% *}
    refused "option '${name#--}' has no effect with method=pseudo-ml; it is for method=fp"
done
fit 2 "$data" "$none" --variance-floor 1e-3
refused "option 'variance-floor' has no effect with method=fp; it is for method=pseudo-ml"
for bad in lr dt; do
    fit 2 "$data" "$none" --$bad 0
    refused "--$bad: '0' is not a number in"
done

# Unpaired snapshots: the same rows without trajectories, in any order.
(echo "t,x" && sed 1d "$data" | cut -d, -f2,3 | sort -t, -k2) >"$work/snapshots.csv"
expect 0 sde fit "$data" -o "$work/flow.hollow" --density flow --flows 2 --iters 400 --batch 64 --hidden 8
expect 0 info "$work/flow.hollow"
stdout_has "flows          2"
expect 0 sde sample "$work/flow.hollow" -n 2
fit 2 "$data" "$none" --density flow
refused "option 'components' has no effect with density=flow; it is for density=mixture"
fit 2 "$data" "$none" --curvature projected
refused "option 'curvature' has no effect with density=mixture; it is for density=flow"
fit 0 "$work/snapshots.csv" "$work/snapshots.hollow"
stderr_has "2000 observations, 1 columns, snapshots"
# Trajectories that are not together are put together.
(head -n 1 "$data" && sed 1d "$data" | sort -t, -s -g -k2,2) >"$work/by_time.csv"
fit 0 "$work/by_time.csv" "$work/by_time.hollow"
same "$work/by_time.hollow" "$model"

# ---- columns, formats, dates, units ----

awk -F, 'NR == 1 { print "who,when,level,note" } NR > 1 { print $1 "," $2 "," $3 ",text " NR }' "$data" >"$work/named.csv"
fit 2 "$work/named.csv" "$none"
refused "named.csv:2: column 'note'" "text 2"
fit 2 "$work/named.csv" "$none" --columns level
refused "named.csv: no column of times, t or time" "give its name with --time" "set --dt"
fit 2 "$work/named.csv" "$none" --columns level --time hour
refused "named.csv: no column of times, 'hour'"
fit 2 "$work/named.csv" "$none" --columns height --time when
refused "named.csv" "height"
fit 2 "$data" "$none" --columns x,t
refused "--columns 'x,t': 't' is the column of times"
fit 0 "$work/named.csv" "$work/named.hollow" --columns level --time when --trajectory who
expect 0 sde eval "$work/named.hollow" "$work/named.csv" --trajectory who
json "$out" '("verdict" in j) or j["rows"] == 200'
expect 0 info --json "$work/named.hollow"
json "$out" 'j["kind"] == "sde" and j["clock"]["name"] == "when" and j["columns"][0]["name"] == "level" and j["clock"]["last"] == 104'
json "$out" '[n["name"] for n in j["networks"]] == ["drift", "diffusion", "density"] and j["method"] == "fp"'
expect 0 info "$work/named.hollow"
stdout_has "named.hollow: a stochastic equation"
stdout_has "clock          name when, first 100, last 104"
command="hollow sde fit -"
# shellcheck disable=SC2086
if "$hollow" sde fit - -o "$work/pipe.hollow" $small <"$data" >"$out" 2>"$err"; then pass; else fail "$command"; fi
same "$work/pipe.hollow" "$model"
if [ $have_python = yes ]; then
    python3 - "$data" "$work" <<'PY'
import struct, sys, zipfile
rows = [line.strip().split(",") for line in open(sys.argv[1])][1:]
def npy(shape, values):
    head = "{'descr': '<f8', 'fortran_order': False, 'shape': %s, }" % (shape,)
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack("<%dd" % len(values), *values)
n = len(rows)
with zipfile.ZipFile(sys.argv[2] + "/arrays.npz", "w") as z:
    z.writestr("trajectory.npy", npy("(%d,)" % n, [float(r[0]) for r in rows]))
    z.writestr("t.npy", npy("(%d,)" % n, [float(r[1]) for r in rows]))
    z.writestr("x.npy", npy("(%d, 1)" % n, [float(r[2]) for r in rows]))
with zipfile.ZipFile(sys.argv[2] + "/ragged.npz", "w") as z:
    z.writestr("t.npy", npy("(%d,)" % (n - 1), [float(r[1]) for r in rows[1:]]))
    z.writestr("x.npy", npy("(%d, 1)" % n, [float(r[2]) for r in rows]))
open(sys.argv[2] + "/table.npy", "wb").write(npy("(%d, 3)" % n, [float(v) for r in rows for v in r]))
PY
    fit 0 "$work/arrays.npz" "$work/npz.hollow"
    (echo "t,x1" && sed 1d "$work/points.csv") >"$work/points1.csv" # the name of an array's first column
    expect 0 sde grid "$work/npz.hollow" "$work/points1.csv"
    cp "$out" "$work/grid1"
    expect 0 sde grid "$model" "$work/points.csv"
    same "$out" "$work/grid1"
    fit 2 "$work/ragged.npz" "$none"
    refused "ragged.npz"
    if grep -q "no column of times" "$err"; then fail "$command: there is one"; else pass; fi
    fit 2 "$work/table.npy" "$none"
    refused "table.npy: no column of times"
    fit 0 "$work/table.npy" "$work/npy.hollow" --trajectory 1 --time 2
    (echo "t,x3" && sed 1d "$work/points.csv") >"$work/points3.csv"
    expect 0 sde grid "$work/npy.hollow" "$work/points3.csv"
    cp "$out" "$work/grid3"
    expect 0 sde grid "$model" "$work/points.csv"
    same "$out" "$work/grid3"
fi
# Dates are years; nothing else may be a date.
awk 'BEGIN { srand(2); print "date,rate,made"; x = 5; for (i = 0; i < 400; i++) { x += 0.1 * (4 - x) + 0.3 * (rand() - 0.5)
    printf "%d-%02d-01,%.4f,2020-01-01\n", 1980 + int(i / 12), i % 12 + 1, x } }' >"$work/dates.csv"
fit 0 "$work/dates.csv" "$work/dates.hollow" --time date --columns rate --method pseudo-ml
expect 0 info --json "$work/dates.hollow"
json "$out" 'abs(j["clock"]["first"] - 1980) < 0.01 and abs(j["clock"]["last"] - 2013.25) < 0.1'
expect 0 sde eval "$work/dates.hollow" "$work/dates.csv"
expect 0 sde sample "$work/dates.hollow" -n 1 --t0 1990-01-01 --t1 2000-07-01 --steps 1
stdout_has "0,1990-01-01," "0,2000-07-01,"
expect 0 sde sample "$work/dates.hollow" -n 1 --times 1990-01-01,1991
stdout_has "0,1990-01-01," "0,1991-01-01T"
expect 0 sde sample "$work/dates.hollow" -n 9 --times 1990-01-01,1991-02-01 --intervals
stderr_has "use --start FILE"
stdout_has "date,rate_low" "1991-02-01,"
expect 0 sde sample "$work/dates.hollow" -n 1 --times 1990-01-01 --json
json "$out" 'abs(j["sample"][0][1] - 1990) < 0.01'
for bad in 1990-13-01 1990-1 x; do
    expect 2 sde sample "$work/dates.hollow" --t0 $bad
    stderr_has "--t0: '$bad' is not a number or a date"
done
fit 2 "$work/dates.csv" "$none" --time date --method pseudo-ml
refused "dates.csv:2: column 'made': '2020-01-01' is not a number"
# A day that there is not, on its own line, in whichever column of times.
sed '77s/.*/2021-02-30,5,2020-01-01/' "$work/dates.csv" >"$work/wrong_date.csv"
fit 2 "$work/wrong_date.csv" "$none" --time date --columns rate
refused "wrong_date.csv:77: column 'date': '2021-02-30' is not a date" "this day or time does not exist"
cut -d, -f1,2 "$work/wrong_date.csv" | sed '1s/.*/time,rate/' >"$work/wrong_time.csv"
fit 2 "$work/wrong_time.csv" "$none"
refused "wrong_time.csv:77: column 'time': '2021-02-30' is not a date"
# Times of day.
awk 'BEGIN { srand(2); print "time,x"; x = 5; for (i = 0; i < 200; i++) { x += 0.1 * (4 - x) + 0.3 * (rand() - 0.5)
    printf "2024-03-%02dT%02d:30:00Z,%.4f\n", 1 + int(i / 24), i % 24, x } }' >"$work/hours.csv"
fit 0 "$work/hours.csv" "$work/hours.hollow"
expect 0 info --json "$work/hours.hollow"
json "$out" 'abs((j["clock"]["last"] - j["clock"]["first"]) * 365.2425 * 24 - 199) < 1e-4'
expect 0 sde sample "$work/hours.hollow" -n 1 --t0 2024-03-02T12:00 --t1 "2024-03-03 12:00" --steps 1
stdout_has "0,2024-03-02T12:00:00," "0,2024-03-03T12:00:00,"
# A year that is far from the others.
sed '150s/2024/2204/' "$work/hours.csv" | sed '151,$d' >"$work/gap.csv"
fit 0 "$work/gap.csv" "$work/gap.hollow"
stderr_has "warning: $work/gap.csv:150: column 'time': there are no observations in the interval of 180 before this time, 100 % of the whole time"
# Trajectories with names.
awk -F, -v OFS=, 'NR > 1 { $1 = sprintf("cell %03d", $1) } { print }' "$data" >"$work/texts.csv"
fit 0 "$work/texts.csv" "$work/texts.hollow"
same "$work/texts.hollow" "$model"
# A second column of times is not taken for x.
awk -F, 'NR == 1 { print "date,t,rate"; next } { print $1 "," NR "," $2 }' "$work/dates.csv" >"$work/twice.csv"
fit 2 "$work/twice.csv" "$none" --time date --method pseudo-ml
refused "column 't' also looks like times"
# Pipes with names.
mkfifo "$work/fifo"
cat "$work/dates.csv" >"$work/fifo" &
fit 0 "$work/fifo" "$work/fifo.hollow" --time date --columns rate --method pseudo-ml
same "$work/fifo.hollow" "$work/dates.hollow"
# Rows that are equally spaced.
cut -d, -f2 "$work/dates.csv" >"$work/bare.csv"
fit 2 "$work/bare.csv" "$none" --method pseudo-ml
refused "bare.csv: no column of times"
fit 0 "$work/bare.csv" "$work/bare.hollow" --method pseudo-ml --dt 0.25
expect 0 info --json "$work/bare.hollow"
json "$out" 'j["clock"]["first"] == 0 and j["clock"]["last"] == 99.75'
# The same from a pipe, dates and messages too.
# shellcheck disable=SC2086
"$hollow" sde fit - -o "$work/piped.hollow" --time date --columns rate --method pseudo-ml $small <"$work/dates.csv" >"$out" 2>"$err"
command="hollow sde fit -"
same "$work/piped.hollow" "$work/dates.hollow"
printf 't,x\n0,1\n1,abc\n' | "$hollow" sde fit - -o "$none" >"$out" 2>"$err"
if [ $? = 2 ]; then pass; else fail "$command: exit status"; fi
refused "standard input:3" "abc"
expect 0 sde sample "$model" --times 101 -n 3
if [ "$(wc -l <"$out")" = 4 ]; then pass; else fail "$command: not three rows"; fi
fit 2 "$data" "$none" --dt 1
refused "the file has a column 't', but --dt is for rows without times"
# Huge scales.
awk -F, 'NR == 1 { print } NR > 1 { printf "%s,%.9g,%.9g\n", $1, $2 * 1e12, $3 * 1e12 - 7e15 }' "$data" >"$work/huge.csv"
fit 0 "$work/huge.csv" "$work/huge.hollow" --iters 800
printf 't,x\n102e12,-6.97e15\n' >"$work/point.csv"
expect 0 sde grid "$work/huge.hollow" "$work/point.csv"
close "$out" 2 1 -5 1.2
close "$out" 2 2 3e6 1e6

# ---- known structure ----

pendulum 150 >"$work/pendulum.csv"
fit 0 "$work/pendulum.csv" "$work/p.hollow" --known-drift 'p=v' --known-diffusion 'p=0' --components 4 --iters 1000 --plot "$work/plot"
printf 't,p,v\n1,0.5,0.7\n2,-1,0\n' >"$work/state.csv"
expect 0 sde grid "$work/p.hollow" "$work/state.csv"
if [ "$(head -n 1 "$out")" = "f1,f2,g1,g2,logp" ]; then pass; else fail "$command: not the header"; fi
close "$out" 2 1 0.7 1e-5
close "$out" 2 3 0 1e-9
close "$out" 3 1 0 1e-5
expect 0 info "$work/p.hollow"
stdout_has "drift_constant 0, drift_linear 0 1"
stdout_has "diffusion 0"
if command -v gnuplot >/dev/null 2>&1; then
    for name in training equation marginals; do file_there "$work/plot/$name.png"; done
fi
for bad in 'p' 'q=v' 'p=' 'p=v*' 'p=2*' 'p=v v' 'p=v;;' 'p=v;p=v' 'p=1e999' 'p=2**v'; do
    fit 2 "$work/pendulum.csv" "$none" --known-drift "$bad"
    refused "--known-drift"
done
for bad in 'p=v' 'p=-1' 'q=0' 'p'; do
    fit 2 "$work/pendulum.csv" "$none" --known-diffusion "$bad"
    refused "--known-diffusion"
done
fit 0 "$work/pendulum.csv" "$work/k.hollow" --known-drift ' v = -2 * p + 0.5 - v*0.25 ; p=v' --network mlp --iters 40 --method pseudo-ml
expect 0 info --json "$work/k.hollow"
json "$out" 'j["known"][1]["drift_linear"] == [-2, -0.25] and j["known"][1]["drift_constant"] == 0.5 and j["network"] == "mlp"'

# ---- simulation ----

expect 0 sde sample "$model" -n 20 --steps 8 --seed 3
stderr_empty
if [ "$(head -n 1 "$out")" = "trajectory,t,x" ] && [ "$(wc -l <"$out")" = 181 ]; then pass; else fail "$command: not a header and 20 x 9 rows"; fi
close "$out" 2 2 100 1e-9
close "$out" 10 2 104 1e-9
cp "$out" "$work/twenty"
expect 0 sde sample "$model" -n 300 --steps 8 --seed 3 --threads 1
head -n 181 "$out" >"$work/first"
same "$work/first" "$work/twenty"
awk -F, 'NR > 1 && $2 == 104 { s += $3; n++ } END { print s / n }' "$out" >"$work/mean" # 20 + 20 exp(-2)
close "$work/mean" 1 1 22.7 1.5
expect 0 sde sample "$model" -n 5 --times 100,100.5,103 --method euler --out "$work/s.csv"
stdout_empty
if [ "$(wc -l <"$work/s.csv")" = 16 ]; then pass; else fail "$command: not 5 x 3 rows"; fi
for method in euler milstein heun srk sra; do expect 0 sde sample "$model" -n 3 --method $method; done
expect 0 sde sample "$model" -n 3 --t0 101 --t1 102 --steps 2
close "$out" 2 2 101 1e-9
expect 0 sde sample "$model" -n 3 --t1 110
stderr_has "warning: times 100..110 are outside of those of the data, 100..104"
printf 'x,other\n30,1\n10,2\n' >"$work/start.csv"
expect 0 sde sample "$model" --start "$work/start.csv" --steps 4
if [ "$(wc -l <"$out")" = 11 ]; then pass; else fail "$command: not 2 x 5 rows"; fi
close "$out" 2 3 30 1e-9
close "$out" 7 3 10 1e-9
# Rows that have a time start there; they must have one.
printf 't,x\n102,30\n102,10\n' >"$work/start.csv"
expect 0 sde sample "$model" --start "$work/start.csv" --steps 4
close "$out" 2 2 102 1e-9
close "$out" 2 3 30 1e-9
close "$out" 6 2 104 1e-9
expect 0 sde sample "$model" --start "$work/start.csv" --steps 4 --t0 101
close "$out" 2 2 101 1e-9
printf 't,x\n102,30\n103,10\n' >"$work/start.csv"
expect 2 sde sample "$model" --start "$work/start.csv"
stderr_has "start.csv:3: column 't': time 103 differs from that of the first row, 102"
# sra is for diffusions that do not depend on x.
fit 0 "$data" "$work/flat.hollow" --known-diffusion x=3 --iters 50
expect 0 sde sample "$work/flat.hollow" -n 3 --method sra
stderr_empty
expect 0 sde sample "$model" -n 3 --method sra
stderr_has "warning: --method sra requires a diffusion that does not depend on x, but this one varies by"
for bad in "--times 1,0" "--times 1,x" "--times 1,," "--t0 5 --t1 5" "--times 1,2 --t0 1" "--method rk4" "-n 0" "--start $work/pendulum.csv"; do
    # shellcheck disable=SC2086
    expect 2 sde sample "$model" $bad --out "$work/never.csv"
    absent "$work/never.csv"
    stdout_empty
done

# ---- comparison ----

expect 0 sde eval "$model" "$data"
stderr_empty
json "$out" '("verdict" in j) or (j["rows"] == 200 and abs(j["density"]) < 0.2 and abs(j["simulated"]) < 0.5 and len(j["density_columns"]) == 1 and j["residual"] >= 0)'
if [ "$(wc -l <"$out")" = 11 ]; then pass; else fail "$command: not a line for each time, and one"; fi
tail -n 1 "$out" >"$work/last"
json "$work/last" 'j["verdict"] == "contradicted" and "unexplained" in j["reasons"] and j["unexplained"] > 0.1 and j["density_misses"] < 0.1 and j["simulations_miss"] < 0.3 and j["trajectories"] == 200 and j["movement"] > 0.1'
awk -F, 'NR == 1 { print "t,x,f1,g1" } NR > 1 { printf "%s,%s,%.9g,3\n", $2, $3, -($3 - 20) / 2 }' "$data" >"$work/truth.csv"
expect 0 sde eval "$work/fp.hollow" "$data" --truth "$work/truth.csv"
tail -n 1 "$out" >"$work/last"
json "$work/last" 'j["verdict"] == "consistent" and j["reasons"] == [] and j["steps"] > 0 and not j["drift"]["failed"] and j["unexplained"] < 0.1 and 0 < j["drift_mae"] < 1.5 and 0 < j["diffusion_mae"] < 1 and len(j["drift_mae_columns"]) == 1'
expect 2 sde eval "$model" "$data" --truth "$data"
stderr_has "data.csv: no column 'f1'"
stdout_empty

# ---- honest limits ----

# A density and a drift that freeze at a small residual.
fit 1 "$work/pendulum.csv" "$work/frozen.hollow" --lambda 30 --components 4 --hidden 16 --iters 1000
stderr_has "training failed: the density does not move as the data do: it misses"
stderr_has "try a smaller --lambda"
file_there "$work/frozen.hollow"
expect 0 sde eval "$work/frozen.hollow" "$work/pendulum.csv"
tail -n 1 "$out" >"$work/last"
json "$work/last" 'j["verdict"] == "contradicted" and "density" in j["reasons"] and j["density_misses"] > 0.5 and j["residual"] < 0.5'
fit 0 "$work/pendulum.csv" "$work/moving.hollow" --components 4 --hidden 16 --iters 1000
# Data that look the same at all times.
paths 200 20 4 >"$work/still.csv"
fit 1 "$work/still.csv" "$none"
refused "the observations have nearly the same distribution at all times" "not identifiable" "f and g are determined only jointly" "--method pseudo-ml"
fit 0 "$work/still.csv" "$work/still.hollow" --anyway
stderr_has "warning: "
fit 0 "$work/still.csv" "$work/still.hollow" --known-diffusion 'x=3'
stderr_has "warning: "
expect 0 sde eval "$work/still.hollow" "$work/still.csv"
tail -n 1 "$out" >"$work/last"
json "$work/last" '"stationary data" in j["reasons"] and j["density_misses"] is None and j["simulations_miss"] is None'
fit 0 "$work/still.csv" "$work/still.hollow" --method pseudo-ml
if grep -q "at all times\|identif" "$err"; then fail "$command: steps need no movement"; else pass; fi
# Drift and diffusion that both change with time.
fit 0 "$work/snapshots.csv" "$work/times.hollow" --time-dependent
stderr_has "warning: drift and diffusion both depend on t, and densities do not identify them"
expect 0 sde eval "$work/times.hollow" "$work/snapshots.csv"
tail -n 1 "$out" >"$work/last"
json "$work/last" 'j["verdict"] != "consistent" and "time dependent" in j["reasons"] and j["steps"] == 0 and j["drift"]["effect"] is None'
fit 0 "$work/snapshots.csv" "$work/times.hollow" --time-dependent --known-diffusion x=3
if grep -q "do not identify" "$err"; then fail "$command: the diffusion is known"; else pass; fi
# One path.
fit 1 "$work/dates.csv" "$none" --time date --columns rate --method fp
refused "1 trajectory" "a time observed once does not determine its density" "--method pseudo-ml"

fit 0 "$work/dates.csv" "$work/series.hollow" --time date --columns rate
stderr_has "1 trajectory: the method is pseudo-ml"
same "$work/series.hollow" "$work/dates.hollow"
expect 0 sde eval "$work/series.hollow" "$work/dates.csv" --time date
tail -n 1 "$out" >"$work/last"
json "$work/last" '"few trajectories" not in j["reasons"] and j["density_misses"] is None'
head -n 13 "$work/dates.csv" >"$work/short.csv" # of so few rows no residual is known
fit 0 "$work/short.csv" "$work/short.hollow" --time date --columns rate
if grep -q "nan" "$err"; then fail "$command: a number is not one"; else pass; fi

# What turns within a density is not seen by matching; steps along trajectories tell.
spin 150 >"$work/spin.csv"
fit 0 "$work/spin.csv" "$work/spin.hollow"
stderr_has "of the mean speed along the trajectories unexplained"
stderr_has "--method pseudo-ml"
expect 0 sde eval "$work/spin.hollow" "$work/spin.csv"
tail -n 1 "$out" >"$work/last"
json "$work/last" 'j["steps_miss"] > 0.5'
expect 0 sde fit "$work/spin.csv" -o "$work/steps.hollow" --method pseudo-ml --iters 600 --batch 64 --hidden 8 --lr 5e-3
expect 0 sde eval "$work/steps.hollow" "$work/spin.csv"
tail -n 1 "$out" >"$work/last"
json "$work/last" 'j["steps_miss"] < 0.4'
# Of few rows nothing is said about the residual, nor that rows were held out.
paths 15 40 2 >"$work/fifteen.csv"
expect 0 sde fit "$work/fifteen.csv" -o "$work/fifteen.hollow" --iters 200 --batch 64 --hidden 8 --lr 5e-3
if grep -q "nan\|held-out" "$err"; then fail "$command: nan, or rows held out of 150"; else pass; fi
expect 0 sde eval "$work/fifteen.hollow" "$work/fifteen.csv"
tail -n 1 "$out" >"$work/last"
json "$work/last" 'j["unexplained"] is None'

# ---- --json: one object ----

expect 0 sde sample "$model" -n 2 --steps 4 --json
json "$out" 'j["columns"] == ["trajectory", "t", "x"] and j["rows"] == 10 == len(j["sample"]) and j["sample"][5][:2] == [1, 100] and j["trajectories"] == 2 and j["not_finite"] == 0'
expect 0 sde sample "$model" -n 2 --steps 4 --json --out "$work/sample.csv"
json "$out" 'j["file"].endswith("sample.csv") and j["rows"] == 10 and "sample" not in j'
expect 0 sde sample "$model" -n 2 --steps 4
same "$out" "$work/sample.csv"
expect 0 sde grid "$model" "$work/points.csv" --json
json "$out" 'j["columns"] == ["f1", "g1", "logp"] and j["rows"] == len(j["values"]) > 0 and j["failed"] == 0 and len(j["values"][0]) == 3'
expect 0 sde grid "$model" "$work/points.csv" --json --out "$work/grid.csv"
json "$out" 'j["file"].endswith("grid.csv") and "values" not in j'
expect 0 sde eval "$model" "$data" --json
json "$out" 'len(j["times"]) == 10 and j["times"][0]["rows"] == 200 and "verdict" in j and j["rows"] == 2000'

# ---- wrong data ----

awk -F, 'NR == 300 { line = $0; next } { print } NR == 301 { print line }' "$work/dates.csv" >"$work/swapped.csv"
fit 2 "$work/swapped.csv" "$none" --time date --columns rate --method pseudo-ml
refused "swapped.csv:301: times do not increase, so rows are treated as snapshots; if they belong to trajectories, give their column with --trajectory COL"
awk -F, -v OFS=, 'NR == 24 { $2 = 99 } { print }' "$data" >"$work/unsorted.csv"
fit 2 "$work/unsorted.csv" "$none"
refused "unsorted.csv:24: column 't': time 99 goes back in its trajectory"
awk 'NR == 24 { print } { print }' "$data" >"$work/doubled.csv"
fit 2 "$work/doubled.csv" "$none"
refused "doubled.csv:25: column 't'" "comes twice in its trajectory"
fit 2 "$work/snapshots.csv" "$none" --method pseudo-ml
refused "snapshots.csv:" "column 't'" "is not later than" "pseudo-ml needs trajectories"
awk -F, -v OFS=, 'NR > 1 { $1 = NR } { print }' "$data" >"$work/single.csv"
fit 2 "$work/single.csv" "$none" --method pseudo-ml
refused "single.csv: every trajectory has only one observation"
awk -F, -v OFS=, 'NR > 1 { $2 = 7 } { print }' "$work/single.csv" >"$work/one_time.csv"
fit 2 "$work/one_time.csv" "$none"
refused "one_time.csv: column 't': all observations have the same time 7"
awk -F, -v OFS=, '{ print $0, NR == 1 ? "y" : 5 }' "$data" >"$work/constant.csv"
fit 2 "$work/constant.csv" "$none"
refused "constant.csv: column 'y' is constant (5)" "--columns"
fit 2 "$work/constant.csv" "$none" --quiet
refused "constant.csv: column 'y' is constant (5)"
for value in nan inf "" many; do
    for column in 1 2 3; do
        awk -F, -v OFS=, -v c=$column -v v="$value" 'NR == 77 { $c = v } { print }' "$data" >"$work/missing.csv"
        fit 2 "$work/missing.csv" "$none"
        refused "missing.csv:77" "column '$(echo "trajectory,t,x" | cut -d, -f$column)'"
    done
done
awk -F, -v OFS=, 'NR == 77 { $3 = "" } { print }' "$data" >"$work/missing.csv"
fit 0 "$work/missing.csv" "$work/dropped.hollow" --drop-missing
stderr_has "skipped 1 rows with missing values"
head -n 2 "$data" >"$work/row.csv"
fit 2 "$work/row.csv" "$none"
refused "row.csv: the table has only 1 row; at least 2 are needed"
: >"$work/empty.csv"
fit 2 "$work/empty.csv" "$none"
refused "empty.csv"
cut -d, -f2 "$data" >"$work/times.csv"
fit 2 "$work/times.csv" "$none"
refused "times.csv: there are no columns for x"
fit 2 "$work/absent.csv" "$none"
refused "absent.csv" "No such file or directory"
fit 2 "$data" "$none" --trajectory nobody
refused "data.csv: there is no column 'nobody', given by --trajectory"

# Columns that are not the model's.
for name in grid eval; do
    expect 2 sde $name "$model" "$work/state.csv"
    stderr_has "state.csv: no column 'x', which the model needs"
    stdout_empty
    expect 2 sde $name "$model" "$work/absent.csv"
    stderr_has "No such file or directory"
done
printf '100,40\n102,30\n103,25\n' >"$work/nameless.csv" # by place
expect 0 sde grid "$model" "$work/nameless.csv"
cp "$out" "$work/nameless.out"
expect 0 sde grid "$model" "$work/points.csv" --out "$work/grid.csv"
stdout_empty
same "$work/grid.csv" "$work/nameless.out"
# Points where there are no values.
printf 't,x\n100,40\n102,1e300\n103,-1e300\n' >"$work/wild.csv"
expect 1 sde grid "$model" "$work/wild.csv"
stderr_has "wild.csv:3: the model has no finite value"
stderr_has "2 of 3 rows have values that are not finite"
if [ "$(wc -l <"$out")" = 4 ]; then pass; else fail "$command: not a header and 3 rows"; fi
printf 't,x\n100,40\n102,\n' >"$work/wild.csv"
expect 2 sde grid "$model" "$work/wild.csv"
stderr_has "--drop-missing"
expect 0 sde grid "$model" "$work/wild.csv" --drop-missing
printf 'a,x\n100,40\n' >"$work/wild.csv"
expect 2 sde grid "$model" "$work/wild.csv"
stderr_has "give its name with --time"
if grep -q -e "--dt" "$err"; then fail "$command: it has no --dt"; else pass; fi

# ---- wrong models ----

awk -F, 'NR == 1 || NR % 5 == 0 { print $2 "," $3 }' "$data" >"$work/table.csv"
expect 0 fit "$work/table.csv" -o "$work/density.hollow" --iters 20 --hidden 4 --width 4 --threads 1
head -c 500 "$model" >"$work/cut.hollow"
for wrong in "$work/absent.hollow" "$work/cut.hollow" "$data" "$work" "$work/density.hollow"; do
    expect 2 sde grid "$wrong" "$work/points.csv" --out "$work/never.csv"
    stderr_has "$wrong"
    absent "$work/never.csv"
    expect 2 sde sample "$wrong"
    stderr_has "$wrong"
    stdout_empty
    expect 2 sde eval "$wrong" "$data"
    stderr_has "$wrong"
    stdout_empty
done
stderr_has "a density model, not a stochastic equation (its format is 'hollow-density "
expect 2 logp "$model" "$data"
stderr_has "a stochastic equation, not a density model (its format is 'hollow-sde 1')"
expect 2 sample "$model"
stderr_has "a stochastic equation, not a density model"

# ---- wrong calls, and outputs that cannot be written ----

expect 2 sde fit "$data" -o "$none" --form network --noise full
stderr_has "networks have independent noise"
absent "$none"
expect 2 sde fit "$data"
stderr_has "-o MODEL is required"
fit 2 "$data" "$none" --method mle
refused "unknown method 'mle'; use one of fp, pseudo-ml"
fit 2 "$data" "$none" --dt 1 --time t
refused "--dt is for rows without times"
fit 0 "$data" "$work/begun.hollow" --resume --iters 60
stderr_has "training starts from the beginning"
fit 2 "$data" "$work/begun.hollow" --resume --iters 60
stderr_has "the run is finished"
expect 2 sde sample "$model" --t0 2020-02-30
stderr_has "2020-02-30"
fit 2 "$data" "$work/nowhere/m.hollow"
stderr_has "nowhere/m.hollow"
fit 2 "$data" "$none" --log "$work/nowhere/log"
refused "nowhere/log"
fit 2 "$data" "$none" --plot "$data/plot"
refused "Not a directory"
cp "$data" "$work/precious.csv"
fit 2 "$work/precious.csv" "$work/precious.csv"
stderr_has "the output would replace the input"
same "$work/precious.csv" "$data"
expect 2 sde sample "$model" --out "$work/nowhere/x.csv"
stderr_has "nowhere/x.csv"
if [ -e /dev/full ]; then
    for call in "sample" "grid" "eval"; do
        rest=
        [ $call != grid ] || rest=$work/points.csv
        [ $call != eval ] || rest=$data
        # shellcheck disable=SC2086
        "$hollow" sde $call "$model" $rest >/dev/full 2>"$err"
        if [ $? = 2 ]; then pass; else fail "sde $call: a full disk goes unnoticed"; fi
    done
fi

# ---- training that fails ----

fit 1 "$data" "$work/failed.hollow" --lr 10 --method pseudo-ml
stderr_has "training failed: the steps are less likely"
stderr_has "try a smaller --lr"
fit 1 "$data" "$work/failed.hollow" --lr 10
stderr_has "training failed"

# ---- stopped and killed, and going on ----

long="--iters 2000 --batch 64 --hidden 8 --components 2 --threads 1"
# shellcheck disable=SC2086
expect 0 sde fit "$data" -o "$work/whole.hollow" $long
killed=$work/killed.hollow
# shellcheck disable=SC2086
killed_after_checkpoint "$killed" sde fit "$data" $long --save-every 0.05 --log "$work/killed.log"
command="hollow sde fit, killed, and --resume"
absent "$killed"
file_there "$killed.ckpt"
# shellcheck disable=SC2086
expect 2 sde fit "$data" -o "$killed" $long --resume --lr 0.02
stderr_has "the checkpoint has other settings or data: it has 'lr 0.002"
# shellcheck disable=SC2086
expect 2 sde fit "$work/by_time.csv" -o "$killed" $long --resume --known-diffusion x=3
stderr_has "other settings or data"
cp "$killed.ckpt" "$work/kept"
head -c 600 "$work/kept" >"$killed.ckpt"
# shellcheck disable=SC2086
expect 2 sde fit "$data" -o "$killed" $long --resume
stderr_has "$killed.ckpt"
absent "$killed"
cp "$work/kept" "$killed.ckpt"
# shellcheck disable=SC2086
expect 0 sde fit "$data" -o "$killed" $long --resume --log "$work/killed.log"
if grep -o '"iteration": [0-9]*' "$work/killed.log" | awk '$2 != NR { bad = 1 } END { exit bad || NR != 2000 }'; then
    pass
else
    fail "$command: the log does not have each iteration once"
fi
same "$killed" "$work/whole.hollow"
absent "$killed.ckpt"
if [ -d /proc/self ]; then
    # shellcheck disable=SC2086
    interrupted sde fit "$data" -o "$work/stopped.hollow" $long --iters 400000 --log "$work/stopped.log"
    stderr_has "stopped.hollow.ckpt is written; run the same command with --resume to continue"
    stdout_empty
    absent "$work/stopped.hollow"
    file_there "$work/stopped.hollow.ckpt"
    interrupted sde sample "$model" -n 1000000 --steps 50 --level 6 --out "$work/never.csv" # within a chunk
    absent "$work/never.csv"
    # While the number of Gaussians is chosen.
    interrupted sde fit "$data" -o "$work/choosing.hollow" --batch 20000
    absent "$work/choosing.hollow"
fi

# Two times are too few for a regression and for any test: networks are learned, and the verdict says so.
awk 'function normal() { return sqrt(-2 * log(1 - rand())) * cos(6.283185307 * rand()) }
    BEGIN { srand(3); print "t,x"; for (k = 0; k < 800; k++) print (k % 2) "," (k % 2 ? 0.7 + 0.4 * normal() : 2 + 0.3 * normal()) }' >"$work/two.csv"
expect 0 sde fit "$work/two.csv" -o "$work/two.hollow" --json --quiet
json "$out" 'j["verdict"] == "not determined" and "few steps" in j["reasons"]'

finish test_cli_sde
