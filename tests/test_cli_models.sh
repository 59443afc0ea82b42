#!/bin/sh
# test_cli_models.sh PROGRAM - what commands say about odd tables and about models of all kinds: atoms, bounds, constant columns, correlated noise,
# equations with functions, networks with images and orders.
set -u
. "$(dirname "$0")/cli_support.sh"
corpus=$(dirname "$0")/corpus

# ---- info of every kind of file ----

for file in "$corpus"/density/* "$corpus"/sde/* "$corpus"/vae/* "$corpus"/net/*; do
    expect 0 info --json "$file"
    json "$out" 'j["bytes"] > 0 and ("columns" in j or "architecture" in j or "latent" in j)'
    expect 0 info "$file"
    stdout_has "$(wc -c <"$file") bytes"
done
expect 0 info --json "$corpus/net/3.hollow"
json "$out" 'j["architecture"]["image"] == [2, 2, 2] and j["architecture"]["kernel"] == 3'
expect 0 info --json "$corpus/net/4.hollow"
json "$out" 'j["architecture"]["order"] == [2, 0, 3, 1] and j["architecture"]["plus"][0]["conditioner"] == "sum"'

# ---- odd tables ----

awk 'BEGIN { srand(5); print "a,b,c"; for (i = 0; i < 90; i++) printf "%.6f,%.6f,%.6f\n", i % 3 ? rand() + rand() : 0, rand() * 4 - 2, rand() }' >"$work/atoms.csv"
expect 0 fit "$work/atoms.csv" -o "$work/atoms" --members mixture --quiet
expect 0 info --json "$work/atoms"
json "$out" 'abs(sum(p["probability"] for p in j["patterns"]) - 1) < 1e-12 and j["columns"][0]["atom"] == 0 and "atom" not in j["columns"][1]'
expect 2 calibrate "$work/atoms" "$work/atoms.csv"
stderr_has "this model has atoms"
awk 'BEGIN { srand(6); for (c = 0; c < 8; c++) printf "%sk%d", c ? "," : "", c; print ""
    for (i = 0; i < 40; i++) for (c = 0; c < 8; c++) printf "%.0f%s", rand() * 3, c < 7 ? "," : "\n" }' >"$work/few.csv"
expect 0 fit "$work/few.csv" -o "$work/few" --members mixture --json
stderr_has "the same applies to 3 more columns (integer)"
json "$out" 'sum(f["kind"] == "integer" for f in j["findings"]) == 8'
awk 'BEGIN { srand(6); for (c = 0; c < 12; c++) printf "k%d,", c; print "x,y"
    for (i = 0; i < 40; i++) { for (c = 0; c < 12; c++) printf "7,"; printf "%.6f,%.6f\n", rand(), rand() } }' >"$work/constant.csv"
expect 2 fit "$work/constant.csv" -o "$work/none" --members mixture
stderr_has "'k9' (7), ... are constant and have no density"
expect 0 fit "$work/constant.csv" -o "$work/constant" --members mixture --drop-constant
stderr_has "column 'k0' is constant and not used"
awk 'BEGIN { srand(7); print "x,y"; for (i = 0; i < 12; i++) printf "%.6f,%.6f\n", rand(), rand() }' >"$work/dozen.csv"
expect 0 fit "$work/dozen.csv" -o "$work/dozen"
stderr_has "no flow is trained: 1 validation row is too few to select it"
stderr_has "the model is a mixture of 1 component"
expect 0 fit "$work/dozen.csv" -o "$work/flow" --validation-share 0 --iters 5 --hidden 4 --width 4 --features 2
stderr_has "there are no validation rows to weight mixtures"
expect 2 fit "$work/dozen.csv" -o "$work/none" --weights x,y
stderr_has "--weights: give one column, not 2"
expect 2 logp "$work/dozen" "$work/few.csv"
stderr_has "there are no columns 'x', 'y'"
printf '1,2,3\n' >"$work/three.csv"
expect 2 logp "$work/dozen" "$work/three.csv"
stderr_has "3 columns without names, but 2 are needed"
# Bounds: values outside have no density.
expect 0 fit "$work/dozen.csv" -o "$work/bounded" --bounds 'x=0:1' --members mixture --quiet
expect 0 info --json "$work/bounded"
json "$out" 'j["columns"][0]["low"] == 0 and j["columns"][0]["high"] == 1 and "low" not in j["columns"][1]'
printf 'x,y\n2,0\n' >"$work/outside.csv"
expect 0 logp "$work/bounded" "$work/outside.csv"
stdout_has "-inf"
stderr_has "2 is above the model's bound 1"
expect 2 calibrate "$work/bounded" "$work/outside.csv"
stderr_has "log p has no solver error there"
# A report of a flow tells its training and that these rows trained it.
expect 0 fit "$work/atoms.csv" -o "$work/trained" --columns b,c --members flow --iters 30 --hidden 8 --width 8 --features 4 --layers 1 --quiet
expect 0 report "$work/trained" "$work/atoms.csv" --draws 100 -o "$work/trained.html" --quiet
for text in 'p of the flow' 'used to train the model'; do
    if grep -q "$text" "$work/trained.html"; then pass; else fail "$command: the page has no '$text'"; fi
done

# What a flow gains over mixtures is measured on rows that chose nothing. Each column's deviation depends on the one before, as maf has it.
awk 'function next_uniform() { state = state * 16807 % 2147483647; return state / 2147483647 }
    BEGIN { state = 3; for (i = 0; i < 710; i++) for (c = 0; c < 6; c++) {
        x = sqrt(-2 * log(next_uniform())) * cos(6.283185 * next_uniform()) * (c ? exp(1.2 * p) : 1)
        x = x > 4 ? 4 : x < -4 ? -4 : x
        p = x > 1.5 ? 1.5 : x < -1.5 ? -1.5 : x
        printf "%.6f%s", x, c < 5 ? "," : "\n" } }' >"$work/chain.csv"
head -n 500 "$work/chain.csv" >"$work/chain_train.csv"
tail -n 210 "$work/chain.csv" >"$work/chain_valid.csv"
expect 0 fit "$work/chain_train.csv" --valid "$work/chain_valid.csv" -o "$work/chain" --model maf --iters 200 --hidden 32 --lr 0.01 --threads 1 --json
stderr_has "(on 42 rows not used for selection)"
json "$out" 'j["gain_rows"] == 42 and j["gain_error"] > 0'

# ---- stochastic equations ----

awk 'BEGIN { srand(1); print "trajectory,t,u,v"; for (k = 0; k < 15; k++) { u = rand(); v = rand(); for (t = 0; t < 12; t++) {
    printf "%d,%g,%.6f,%.6f\n", k, t / 10, u, v; a = rand() - .5; b = .9 * a + .3 * (rand() - .5); u += -.1 * u + .3 * a; v += -.1 * v + .3 * b } } }' >"$work/p.csv"
expect 0 sde fit "$work/p.csv" -o "$work/noise" --noise full --form linear --quiet
expect 0 report "$work/noise" "$work/p.csv" --draws 100 -o "$work/noise.html" --quiet
if grep -q 'class="arrow"' "$work/noise.html"; then pass; else fail "$command: no arrows of the drift"; fi
expect 0 sde fit "$work/p.csv" -o "$work/forms" --columns u --quiet --diffusion 'u = s*sqrt(1 + u^2)' \
    --drift 'u = -k*tanh(u)/(1 + u^2) + a*exp(-abs(u)) - log(2 + cos(u)) + 0*sin(u)*u^-2 + 0*tan(u/4)'
expect 0 info --json "$work/forms"
json "$out" 'j["drift_form"].startswith("u = -k*tanh(u)")'
expect 0 sde fit "$work/p.csv" -o "$work/both" --noise full --form linear --quiet --diffusion 'u = s*sqrt(1 + u^2); v = q'
expect 0 info "$work/both"
stdout_has "diffusion_form"
printf 't,u\n0.5,0.3\n' >"$work/point.csv"
expect 0 sde grid "$work/forms" "$work/point.csv"
expect 2 sde fit "$work/p.csv" -o "$work/none" --columns u --drift "u = $(awk 'BEGIN { for (i = 0; i < 60; i++) printf "%sc%d*u", i ? "+" : "", i }')"
stderr_has "more than"
finish test_cli_models
