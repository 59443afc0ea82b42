#!/bin/sh
# test_cli_paper.sh PROGRAM - the figures of stochastic equations from the outside: files, their contents, messages.
set -u
. "$(dirname "$0")/cli_support.sh"

# csv FILE HEADER LINES CONDITION: this header, as many lines, and of every row (r, by names, numbers where they are) the Python
# expression holds.
csv() {
    file_there "$1"
    if [ "$(head -1 "$1")" = "$2" ]; then pass; else fail "$command: $1: another header"; fi
    if [ "$(wc -l <"$1")" = "$3" ]; then pass; else fail "$command: $1: $(wc -l <"$1") lines instead of $3"; fi
    [ $have_python = yes ] || return 0
    if python3 -c '
import csv, math, sys
def number(v):
    try:
        return float(v)
    except ValueError:
        return v
for r in csv.DictReader(open(sys.argv[1])):
    r = {k: number(v) for k, v in r.items()}
    assert all(isinstance(v, str) or math.isfinite(v) for v in r.values()), r
    assert eval(sys.argv[2]), r
' "$1" "$4" 2>"$work/python"; then pass; else fail "$command: $1: $4"; fi
}

pictures() {
    command -v gnuplot >/dev/null 2>&1 || return 0
    for file in "$@"; do
        file_there "$file"
        if [ "$(head -c 4 "$file" | tail -c 3)" = PNG ]; then pass; else fail "$command: $file is no picture"; fi
    done
}

# ---- fig4 ----

expect 0 paper
stdout_has "fig4"
stdout_has "fig5"
expect 0 paper fig4 --quick --out "$work/4"
for file in fig4_density.csv fig4_paths.csv fig4_field.csv fig4.json; do
    stdout_has "$work/4/$file"
done
stderr_has "mean absolute error of the drift"
csv "$work/4/fig4_density.csv" "t,p,data,density,sde" 6001 \
    '0 <= r["t"] <= 5 and -2.4 < r["p"] < 2.4 and r["data"] >= 0 and r["density"] >= 0 and r["sde"] >= 0'
csv "$work/4/fig4_paths.csv" "source,trajectory,t,p,v" 3001 'r["source"] in ("true", "learned") and 0 <= r["t"] <= 5'
csv "$work/4/fig4_field.csv" "p,v,f_p,f_v,g_p,g_v,true_f_p,true_f_v,true_g_p,true_g_v" 1501 \
    'abs(r["true_f_p"] - r["v"]) < 1e-4 and abs(r["true_f_v"] + 2 * math.sin(r["p"])) < 1e-4 and r["true_g_v"] == .2 and r["g_v"] >= 0'
json "$work/4/fig4.json" 'j["paper"] == "fig4" and j["quick"] and j["drift_mae"] > 0 and j["diffusion_mae"] > 0 and len(j["times"]) == 50'
json "$work/4/fig4.json" '0 < j["distance_floor"] < .2 and j["distance_density"] > 0 and j["distance_sde"] > 0'
pictures "$work/4/fig4_density.png" "$work/4/fig4_field.png"
if [ $have_python = yes ]; then # the model's density of the position has mass 1 at every time, if none is outside the picture, and so has the data's
    if python3 -c '
import csv, sys
mass = {}
for r in csv.DictReader(open(sys.argv[1])):
    for k in ("data", "density"):
        mass[k, r["t"]] = mass.get((k, r["t"]), 0) + float(r[k]) * 4.8 / 120
assert len(mass) == 100 and all(.9 < v < 1.01 for v in mass.values()), mass
' "$work/4/fig4_density.csv" 2>"$work/python"; then pass; else fail "$command: a density without mass 1"; fi
fi
if [ "$(find "$work/4" -name '.*' -type f | wc -l)" = 0 ]; then pass; else fail "a temporary file is left"; fi

# ---- fig5 ----

expect 0 paper fig5 --quick --out "$work/5" --threads 1
csv "$work/5/fig5.csv" "kept,method,seed,observations,drift_mae,diffusion_mae,seconds,cpu_seconds" 7 \
    'r["kept"] in (1, .05) and r["method"] in ("fp", "pseudo-ml", "regression") and r["drift_mae"] > 0 and abs(r["observations"] / 10000 - r["kept"]) < .01'
json "$work/5/fig5.json" 'j["paper"] == "fig5" and len(j["results"]) == 6 and all(r["drift_mae_mean"] > 0 and r["drift_mae_sd"] is None
    for r in j["results"])'
# An Euler step between neighbours is near the truth, one over a hundred times as long is not.
json "$work/5/fig5.json" '[r["drift_mae_mean"] for r in j["results"] if r["method"] == "pseudo-ml"][0] < .3'
pictures "$work/5/fig5.png"
# The same seed gives the same errors for any number of threads, another seed others.
expect 0 paper fig5 --quick --out "$work/5b" --threads 2
cut -d, -f1-6 "$work/5/fig5.csv" >"$work/one"
cut -d, -f1-6 "$work/5b/fig5.csv" >"$work/two"
same "$work/one" "$work/two"
expect 2 paper fig5 --out "$work/5/fig5.csv"
stderr_has "Not a directory"

# ---- bench sde ----

expect 0 bench sde --quick --problem pendulum --method fp --iterations 20 --kept 0.05 --hidden 8
json "$out" 'j["bench"] == "sde" and j["problem"] == "pendulum" and j["kept"] == .05 and j["drift_mae"] > 0 and j["cpu_seconds"] > 0'
json "$out" 'j["method"] == "fp" and j["network"] == "hollow"'
expect 2 bench sde --problem nonsense
stderr_has "unknown problem 'nonsense'"

# ---- Ctrl-C ----

if [ -d /proc/self ]; then
    mkdir "$work/stopped"
    interrupted paper fig5 --out "$work/stopped"
    interrupted paper fig4 --out "$work/stopped"
    if [ "$(find "$work/stopped" -type f | wc -l)" = 0 ]; then pass; else fail "$command: left a file"; fi
fi

# ---- table1 ----

columns=name,minus_elbo,error,minus_iwae_40,error_40,minus_iwae_10,error_10,gap,elbo_better,elbo_better_error,elbo_significant,iwae_10_better,iwae_10_better_error,iwae_10_significant,iwae_40_better,iwae_40_better_error,iwae_40_significant,effective,validation,parameters,epochs,cpu_seconds_per_epoch,evaluations
expect 2 paper table1 --out "$work/t"
stderr_has "--data DIR"
expect 2 paper table1 --quick --out "$work/t" --only vae,nothing
stderr_has "hollow-stochastic"
expect 0 paper table1 --quick --shared --out "$work/t" --threads 1
stdout_has "table1_shared_1.csv"
csv "$work/t/table1_shared_1.csv" "$columns" 8 "r['minus_elbo'] > 0 and r['epochs'] == 3 and (r['minus_iwae_40'] == '') == (r['name'] in ('ffjord', 'hollow-stochastic')) and (r['elbo_better'] == '') == (r['name'] == 'vae')"
file_there "$work/t/table1_shared_time_1.csv"
file_there "$work/t/table1_shared_sylvester_1.png"
cp "$work/t/table1_shared_1.csv" "$work/before.csv"
rm "$work/t/table1_shared_hollow_1.hollow" "$work/t/table1_shared_hollow_1".*.csv "$work/t/table1_shared_1.csv"
expect 0 paper table1 --quick --shared --out "$work/t" --threads 1 --only hollow # what is there is not made again
cut -d, -f1-21,23 "$work/before.csv" >"$work/before"
cut -d, -f1-21,23 "$work/t/table1_shared_1.csv" >"$work/after"
same "$work/before" "$work/after"
expect 2 paper table1 --quick --net linear --shared --out "$work/t" --threads 1
stderr_has "has other settings"
expect 0 paper table1 --quick --anchor --epochs 2 --only vae,ffjord --out "$work/t" --threads 1
bounds() { echo "minus_iwae_$1_$2,error_$1_$2,better_$1_$2,better_error_$1_$2,significant_$1_$2"; }
columns=name,minus_elbo,error,minus_elbo_fresh,error_fresh,$(bounds 40 fresh),$(bounds 40 best),$(bounds 10 fresh),$(bounds 10 best),validation,cpu_seconds_per_epoch,epochs
csv "$work/t/table1_anchor_1.csv" "$columns" 3 "r['epochs'] == 2 and r['minus_iwae_40_fresh'] >= r['minus_iwae_40_best'] and (r['better_40_best'] == '') == (r['name'] == 'vae')"
expect 2 paper table1 --quick --anchor --shared --out "$work/t"
stderr_has "cannot be combined"
expect 0 paper posteriors --quick --out "$work/t" --threads 1
file_there "$work/t/posteriors.png"

finish test_cli_paper
