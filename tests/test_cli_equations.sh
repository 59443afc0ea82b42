#!/bin/sh
# test_cli_equations.sh PROGRAM - hollow sde: equations as text, forms that do not apply, columns that are the same, too few steps, paths that diverge.
set -u
. "$(dirname "$0")/cli_support.sh"
fast="--iters 20 --components 1 --threads 1"
none=$work/none.hollow

# The last command's output lacks a text.
stdout_lacks() {
    if grep -qF -e "$1" "$out"; then fail "$command: '$1' on stdout"; else pass; fi
}
stderr_lacks() {
    if grep -qF -e "$1" "$err"; then fail "$command: '$1' on stderr"; else pass; fi
}

# wells N: trajectories of dx = 2 x - 2 x^3 dt + .5 dW at 15 times .1 apart; y = 1 - 2 x, z = x.
wells() {
    awk -v n="$1" 'function normal() { return sqrt(-2 * log(1 - rand())) * cos(6.283185307 * rand()) }
    BEGIN { srand(3); print "trajectory,t,x,y,z,w"; for (i = 0; i < n; i++) { x = normal(); w = normal(); for (k = 0; k < 15; k++) {
        printf "%d,%.9g,%.9g,%.9g,%.9g,%.9g\n", i, k / 10, x, 1 - 2 * x, x, w
        for (j = 0; j < 5; j++) { x += (2 * x - 2 * x * x * x) / 50 + 0.5 * sqrt(1 / 50) * normal(); w += -w / 50 + 0.3 * sqrt(1 / 50) * normal() } } } }'
}
wells 200 >"$work/w.csv"

# ---- equations as text ----

# shellcheck disable=SC2086
expect 0 sde fit "$work/w.csv" --columns x -o "$work/x.hollow" --form poly3 $fast
expect 0 info --json "$work/x.hollow"
json "$out" '"network" not in j and j["form"] == "cubic, constant" and [n["name"] for n in j["networks"]] == ["density"] and j["replicates"] == 40'
json "$out" 'j["equations"][0].startswith("f_x = ") and "*x^3" in j["equations"][0] and j["equations"][1].startswith("g_x = 0.") and abs(float(j["equations"][1].split()[-1]) - .5) < .05'
expect 0 info "$work/x.hollow"
if grep -q '^  f_x = ' "$out" && grep -q '^  g_x = ' "$out"; then pass; else fail "$command: equations have no lines of their own"; fi
stdout_lacks "network        mlp"
expect 0 info --json "$work/x.hollow"

# the text says what grid says
printf 't,x\n0,-1.2\n0.3,0.4\n1,0.9\n' >"$work/points.csv"
equation=$(grep -o '"f_x = [^"]*"' "$out" | sed 's/"//g; s/f_x = //; s/\^3/*x*x/; s/\^2/*x/')
expect 0 sde grid "$work/x.hollow" "$work/points.csv"
for line in 2 3 4; do
    x=$(sed -n "${line}p" "$work/points.csv" | cut -d, -f2)
    if awk -v x="$x" -v f="$(sed -n "${line}p" "$out" | cut -d, -f1)" "BEGIN { d = $equation - f; exit !(d < 0.01 && -d < 0.01) }"; then pass; else fail "info: the equation differs from grid at $x"; fi
done

# ---- options that do not apply ----

# shellcheck disable=SC2086
expect 2 sde fit "$work/w.csv" --columns x -o "$none" --form ridge $fast
stderr_has "form ridge is for two to 6 columns"
# shellcheck disable=SC2086
expect 2 sde fit "$work/w.csv" --columns x,w -o "$none" --form ridge --time-dependent $fast
stderr_has "without dependence on time"
for option in "--hidden 8" "--network mlp" "--lambda 0.3" "--pointwise" "--variance-floor 1e-5 --method pseudo-ml"; do
    # shellcheck disable=SC2086
    expect 2 sde fit "$work/w.csv" --columns x -o "$none" --form poly3 $fast $option
    stderr_has "has no effect with form=poly3; it is for form=auto|network"
done
absent "$none"

# ---- columns that are the same ----

# shellcheck disable=SC2086
expect 2 sde fit "$work/w.csv" --columns x,z,w -o "$none" $fast
stderr_has "columns 'x' and 'z' are equal in every row"
stderr_has "leave one of them out with --columns"
# shellcheck disable=SC2086
expect 2 sde fit "$work/w.csv" --columns w,x,y -o "$none" $fast
stderr_has "columns 'x' and 'y' are linear functions of each other"
absent "$none"

# ---- too few steps ----

printf 't,x\n0,1\n1,2\n' >"$work/two.csv"
# shellcheck disable=SC2086
expect 2 sde fit "$work/two.csv" -o "$none" $fast
stderr_has "there is only 1 step along trajectories; pseudo-ml needs at least 10"
absent "$none"

# ---- functions of time, from steps ----

# shellcheck disable=SC2086
expect 0 sde fit "$work/w.csv" --columns w -o "$work/t.hollow" --time-dependent --json $fast
json "$out" '"time dependent" not in j["reasons"]'
stderr_lacks "densities do not identify"

# ---- paths that diverge; a file of results that a command does not have ----

printf 't,x\n0,90\n0,0\n' >"$work/far.csv"
expect 1 sde sample "$work/x.hollow" -n 5 --start "$work/far.csv" --steps 2 --t1 .5
stderr_has "3 of 5 trajectories leave the region of the data"
stderr_has "(--start)"
if [ "$(grep -c nan "$out")" = 6 ] && [ "$(wc -l <"$out")" = 16 ]; then pass; else fail "rows of trajectories that diverge"; fi
expect 1 sde sample "$work/x.hollow" -n 5 --start "$work/far.csv" --steps 2 --t1 .5 --intervals
stderr_has "the intervals are of the other trajectories"
if [ "$(tail -1 "$out" | grep -c nan)" = 0 ]; then pass; else fail "intervals of trajectories that diverge"; fi
expect 2 sde eval "$work/x.hollow" "$work/w.csv" --out "$work/results"
stderr_has "unknown option '--out': results are written to standard output"
expect 2 report "$work/x.hollow" "$work/w.csv" --out "$work/page.html"
stderr_has "unknown option '--out'; did you mean '-o'?"

finish test_cli_equations
