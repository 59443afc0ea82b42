#!/bin/sh
# test_cli_training.sh PROGRAM - losses and solvers of `hollow fit`, and the figures about training.
set -u
. "$(dirname "$0")/cli_support.sh"
data=$work/data.csv
small="--iters 40 --batch 32 --hidden 8 --width 8 --features 4 --threads 1"
(echo "a,b" && awk 'BEGIN { srand(3); for (i = 0; i < 200; i++) {
    u = sqrt(-2 * log(1 - rand())); v = 6.283185307 * rand(); x = u * cos(v); y = u * sin(v)
    printf "%.9g,%.9g\n", x, 0.5 * y + x * x } }') >"$data"

# fit STATUS MODEL OPTION ...
fit() {
    status=$1
    to=$2
    shift 2
    # shellcheck disable=SC2086
    expect "$status" fit "$data" -o "$to" $small "$@"
}

# ---- losses ----

for loss in nll flow-matching score; do
    fit 0 "$work/$loss.hollow" --loss $loss --log "$work/$loss.log"
    file_there "$work/$loss.hollow"
    expect 0 logp "$work/$loss.hollow" "$data"
done
json "$work/nll.log" 'j["phase"] == "likelihood" and j["ode_steps"] >= 4'
json "$work/flow-matching.log" 'j["phase"] == "flow matching" and j["evaluations"] == 1'
json "$work/score.log" 'j["phase"] == "score matching" and j["evaluations"] == 1 and j["loss"] < 10'
fit 2 "$work/none" --loss score --model maf
stderr_has "score matching is for continuous flows; this one is a maf"
fit 2 "$work/none" --loss score --flows 2
stderr_has "score matching trains one network; the flow has 2"
absent "$work/none"

# ---- solvers ----

# A solver that is named trains, too, adaptively: the looser the tolerance, the fewer evaluations. Adams and BDF by the adjoint.
for solver in dopri5 adams-jacobi bdf-jacobi auto; do
    fit 0 "$work/$solver.hollow" --loss nll --solver $solver --iters 4 --rtol 1e-4 --atol 1e-4 --members flow --log "$work/$solver.log"
    json "$work/$solver.log" 'j["ode_steps"] == 0 and j["evaluations"] > 6 and j["backward"] > 6'
    expect 0 info "$work/$solver.hollow"
    stdout_has "$solver, rtol 0.0001"
done
fit 0 "$work/steps.hollow" --loss nll --solver tsit5 --ode-steps 5 --iters 4 --log "$work/steps.log"
json "$work/steps.log" 'j["ode_steps"] == 5 and j["evaluations"] == 20'
fit 2 "$work/none" --solver dopri6
stderr_has "dopri6"
absent "$work/none"

# ---- figures ----

expect 0 paper fig2 --quick --threads 1 --out "$work/fig2"
for file in fig2.csv fig2.json; do
    file_there "$work/fig2/$file"
    stdout_has "$work/fig2/$file"
done
json "$work/fig2/fig2.json" '[s["name"] for s in j["settings"]] == ["nonstiff", "stiff"]'
json "$work/fig2/fig2.json" 'all(m["failure"] == "" and m["iterations"] == 3 for s in j["settings"] for m in s["methods"])'
# At the stiff start the exact diagonal pays, and functional iteration does not.
json "$work/fig2/fig2.json" '{m["method"]: m["rk_over_this_first_tenth"] for m in j["settings"][1]["methods"]}["adams-jacobi"] > 2'
json "$work/fig2/fig2.json" '{m["method"]: m["rk_over_this_first_tenth"] for m in j["settings"][0]["methods"]}["adams-jacobi"] < 1'
if [ "$(wc -l <"$work/fig2/fig2.csv")" = 31 ]; then pass; else fail "fig2.csv does not have 31 lines"; fi

finish test_cli_training
