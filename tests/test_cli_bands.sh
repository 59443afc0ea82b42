#!/bin/sh
# test_cli_bands.sh PROGRAM - bands of hollow sde fit: in grid, of real data, and where there are no data.
set -u
. "$(dirname "$0")/cli_support.sh"
data=$(dirname "$0")/../data
fast="--iters 20 --components 1 --threads 1"

# holds FILE ZERO SLOPE: at every point of the table that is inside the data the band of the drift holds SLOPE (x - ZERO). Its lines are those of
# the points $work/points.csv.
holds() {
    if paste -d, "$work/points.csv" "$1" | awk -F, -v zero="$2" -v slope="$3" '
        NR == 1 { for (k = 1; k <= NF; k++) at[$k] = k; next }
        $at["inside"] { y = slope * ($2 - zero); good += $at["f1_low"] <= y && y <= $at["f1_high"]; all++ }
        END { exit !(all >= 4 && good == all) }'
    then pass; else fail "$command: the bands do not hold $3 (x - $2): $(cat "$1")"; fi
}

# The values that docs/sde.md has for the VIX and for bonds.
printf 't,log_vix\n2000,2.3\n2000,2.6\n2000,2.88\n2000,3.2\n2000,3.6\n2000,9\n' >"$work/points.csv"
# shellcheck disable=SC2086
expect 0 sde fit "$data/vix/daily.csv" --columns log_vix --time t -o "$work/vix.hollow" $fast
expect 0 sde grid "$work/vix.hollow" "$work/points.csv"
stdout_has "f1,g1,logp,f1_low,f1_high,g1_low,g1_high,inside"
holds "$out" 2.88 -5.0
if sed -n 7p "$out" | grep -q ',0$' && sed -n 4p "$out" | grep -q ',1$'; then pass; else fail "$command: inside is wrong: $(cat "$out")"; fi
printf 't,yield\n2000,2\n2000,4\n2000,5.8\n2000,8\n2000,12\n' >"$work/points.csv"
# shellcheck disable=SC2086
expect 0 sde fit "$data/us10y/monthly.csv" --columns yield --time t -o "$work/us10y.hollow" $fast
expect 0 sde grid "$work/us10y.hollow" "$work/points.csv"
holds "$out" 5.8 -0.04

# Forecast intervals: in order, and wider with the uncertainty of the model.
printf 'yield\n5\n' >"$work/start.csv"
expect 0 sde sample "$work/us10y.hollow" --start "$work/start.csv" -n 400 --t0 60 --t1 70 --steps 2 --intervals
stdout_has "t,yield_low,yield_median,yield_high"
if awk -F, 'NR == 2 { ok = $2 == 5 && $4 == 5 } NR == 4 { ok = ok && $2 < $3 && $3 < $4 } END { exit !(ok && NR == 4) }' "$out"
then pass; else fail "$command: intervals: $(cat "$out")"; fi

# Paths through given states: they meet them, and spread between.
printf 't,yield\n60,5\n61,6\n62,5.5\n' >"$work/given.csv"
expect 0 sde sample "$work/us10y.hollow" --given "$work/given.csv" -n 200 --steps 2 --intervals
stderr_has "effective fraction"
if awk -F, '
    NR == 2 { ok = $2 == 5 && $4 == 5 }
    NR == 3 { ok = ok && $1 == 60.5 && $2 < $3 - 0.1 && $3 + 0.1 < $4 && $3 > 4.5 && $3 < 6.5 }
    NR == 4 { ok = ok && $2 == 6 && $4 == 6 }
    END { exit !(ok && NR == 6) }' "$out"
then pass; else fail "$command: bridges: $(cat "$out")"; fi
expect 2 sde sample "$work/us10y.hollow" --given "$work/given.csv" --t0 60
stderr_has "remove --start"
printf 't,yield\n60,5\n60,6\n' >"$work/given.csv"
expect 2 sde sample "$work/us10y.hollow" --given "$work/given.csv"
stderr_has "given.csv:3: the time is not later than that of the row before"
if grep -q -e '--trajectory' "$err"; then fail "$command: advice that this command does not know"; else pass; fi

# Simulations that run away are said to, not to miss "inf %".
awk 'BEGIN { print "t,x1"; for (k = 0; k < 8; k++) for (i = 0; i < 60; i++) print k / 7 "," k + sin(i * i + k) }' >"$work/moves.csv"
expect 1 sde fit "$work/moves.csv" -o "$work/away.hollow" --known-drift 'x1=5000*x1' --iters 5
stderr_has "simulations diverge"
stderr_has "they diverge"

# Without bands the columns are as before.
# shellcheck disable=SC2086
expect 0 sde fit "$data/us10y/monthly.csv" --columns yield --time t -o "$work/plain.hollow" --bands 0 $fast
expect 0 sde grid "$work/plain.hollow" "$work/points.csv" --json
json "$out" 'j["columns"] == ["f1", "g1", "logp"]'
expect 0 sde grid "$work/us10y.hollow" "$work/points.csv" --json
json "$out" 'len(j["columns"]) == 8 and len(j["values"][0]) == 8'

# Networks have bands if they are asked for.
awk 'BEGIN { s = 5; print "path,t,x1"; for (p = 0; p < 30; p++) { x = p / 15 - 1; for (k = 0; k < 12; k++) { printf "%d,%.1f,%.6f\n", p, k / 10, x
    sum = 0; for (i = 0; i < 4; i++) { s = (s * 16807) % 2147483647; sum += s / 2147483647 - .5 }; x += .1 * (1 - x) + .3 * sum } } }' >"$work/paths.csv"
printf 't,x1\n0.5,0\n0.5,0.5\n0.5,99\n' >"$work/places.csv"
expect 0 sde fit "$work/paths.csv" --trajectory path -o "$work/nets.hollow" --form network --method pseudo-ml --iters 60 --hidden 8 --bands 3
stderr_has "networks for bands"
expect 0 info "$work/nets.hollow" --json
json "$out" 'j["replicates"] == 3 and "bands 3" in j["note"]'
expect 0 sde grid "$work/nets.hollow" "$work/places.csv" --json
json "$out" 'len(j["columns"]) == 8 and [v[7] for v in j["values"]] == [1, 1, 0] and all(v[3] < v[0] < v[4] and v[5] < v[1] < v[6] for v in j["values"])'
expect 0 sde fit "$work/paths.csv" --trajectory path -o "$work/nets.hollow" --form network --method pseudo-ml --iters 60 --hidden 8
expect 0 sde grid "$work/nets.hollow" "$work/places.csv" --json
json "$out" 'j["columns"] == ["f1", "g1", "logp"]'

# Expressions: constants in messages, JSON, info, and a wrong one.
# shellcheck disable=SC2086
expect 0 sde fit "$data/us10y/monthly.csv" --columns yield --time t -o "$work/form.hollow" --drift 'yield = kappa*(theta - yield)' --diffusion 'yield = sigma*yield^gamma' --json $fast
stderr_has "kappa = "
json "$out" '[c["name"] for c in j["constants"]] == ["kappa", "theta", "sigma", "gamma"] and all(c["error"] > 0 for c in j["constants"])'
expect 0 info "$work/form.hollow" --json
json "$out" 'j["drift_form"] == "yield = kappa*(theta - yield)" and len(j["constants"]) == 4 and j["form"] == "expression, expression"'
expect 0 info "$work/form.hollow"
stdout_has "diffusion_form yield = sigma*yield^gamma"
expect 0 sde grid "$work/form.hollow" "$work/points.csv"
stdout_has "f1,g1,logp,f1_low,f1_high,g1_low,g1_high,inside"
holds "$out" 5.8 -0.04
expect 0 sde sample "$work/form.hollow" -n 2 --steps 2
expect 2 sde fit "$data/us10y/monthly.csv" --columns yield --time t -o "$work/never.hollow" --drift 'yield = kappa*(theta - yiel' $fast
stderr_has "drift: column 28: expected an operator or ')'"
absent "$work/never.hollow"

finish test_cli_bands
