#!/bin/sh
# test_cli_plots.sh PROGRAM - what `fit --plot` and `sde fit --plot` draw. In place of gnuplot stands a script that keeps what it is told as the
# picture, so pictures can be read, and the test runs where there is no gnuplot.
set -u
. "$(dirname "$0")/cli_support.sh"
mkdir "$work/bin" "$work/broken"
cat >"$work/bin/gnuplot" <<'END'
#!/bin/sh
cat >"$0.in"
mv "$0.in" "$(sed -n "s/^set output [\"']\(.*\)[\"']$/\1/p" "$0.in")"
END
printf '#!/bin/sh\ncat >/dev/null\nexit 3\n' >"$work/broken/gnuplot"
chmod +x "$work/bin/gnuplot" "$work/broken/gnuplot"
usual=$PATH
PATH=$work/bin:$usual
small="--members flow --iters 20 --batch 64 --hidden 8 --width 8 --features 4 --layers 1 --threads 1 --quiet"
awk 'BEGIN { srand(3); print "\"a \"\"q\"\"\",b,c,d,e"; for (i = 0; i < 150; i++) {
    x = rand() + rand() + rand(); y = rand() * x; printf "%.6f,%.6f,%.6f,%.6f,%.6f\n", x, y, rand(), rand() - x, i % 7 } }' >"$work/d.csv"

# picture FOLDER NAME TEXT ...: the picture is there and has been told each text.
picture() {
    drawn=$work/$1/$2.png
    shift 2
    file_there "$drawn"
    for text in "$@"; do
        if grep -qF -e "$text" "$drawn"; then pass; else fail "$command: $drawn has no '$text'"; fi
    done
}
# lines_of COUNT REGEX: so many lines of the last picture match.
lines_of() {
    count=$(grep -cE -e "$2" "$drawn")
    if [ "$count" = "$1" ]; then pass; else fail "$command: $drawn has $count lines of '$2' instead of $1"; fi
}
# block NAME: a block of data of the last picture.
block() {
    sed -n "/^\$$1 << E\$/,/^E\$/p" "$drawn" | sed '1d;$d'
}

# ---- densities ----

# shellcheck disable=SC2086
expect 0 fit "$work/d.csv" -o "$work/m" --columns 1,2 --plot "$work/two" $small
picture two training "set xrange [0:20]" "training batch" "validation, adaptive solver"
if [ "$(block validation | grep -vc nan)" -ge 1 ]; then pass; else fail "$command: no validation in the curves"; fi
picture two density 'set xlabel "a ?q?" noenhanced' 'set ylabel "b" noenhanced'
if [ "$(block data | wc -l)" = 150 ] && [ "$(block samples | wc -l)" = 2000 ]; then pass; else fail "$command: not all rows and samples"; fi
# The density on the grid adds up to almost all of one.
mass=$(block density | awk 'NF == 3 { n++; if (n == 1) { x0 = $1; y0 = $2 } sum += $3; x = $1; y = $2 }
    END { print n, sum * (x - x0) * (y - y0) / 120 / 120 }')
if echo "$mass" | awk '{ exit !($1 == 14641 && $2 > .5 && $2 < 1.05) }'; then pass; else fail "$command: a grid with $mass"; fi
absent "$work/two/pairs.png"
# shellcheck disable=SC2086
expect 0 fit "$work/d.csv" -o "$work/m" --plot "$work/five" $small
picture five pairs "set multiplot layout 4,4"
lines_of 12 '^plot \$(data|samples) using [1-4]:[1-4] with points'
lines_of 4 'smooth frequency with boxes'
absent "$work/five/density.png"
# A conditional density has no samples without a context, a mixture no curves.
# shellcheck disable=SC2086
expect 0 fit "$work/d.csv" -o "$work/m" --columns 1,2 --context 3 --plot "$work/given" $small
picture given training
absent "$work/given/density.png"
expect 0 fit "$work/d.csv" -o "$work/m" --columns 1,2 --members mixture --plot "$work/mixture" --quiet
picture mixture density
absent "$work/mixture/training.png"
# A gnuplot that fails, and none at all.
PATH=$work/broken:$usual
# shellcheck disable=SC2086
expect 1 fit "$work/d.csv" -o "$work/m" --columns 1,2 --plot "$work/failed" $small
stderr_has "training.png: gnuplot could not draw it"
if [ -z "$(ls -A "$work/failed")" ]; then pass; else fail "$command: left $(ls -A "$work/failed")"; fi
PATH=$work/nothing
"$hollow" fit "$work/d.csv" -o "$work/m" --columns 1,2 --members mixture --plot "$work/none" 2>"$err"
PATH=$work/bin:$usual
stderr_has "no pictures: gnuplot is not installed"

# ---- stochastic equations ----

# paths COLUMNS: 12 of them, which go to 0 with noise.
paths() {
    awk -v d="$1" 'BEGIN { srand(1); printf "trajectory,t"; for (i = 0; i < d; i++) printf ",x%d", i; print ""
        for (k = 0; k < 12; k++) { for (i = 0; i < d; i++) x[i] = rand(); for (t = 0; t < 12; t++) {
            printf "%d,%g", k, t / 10; for (i = 0; i < d; i++) { printf ",%.6f", x[i]; x[i] += -.1 * x[i] + .1 * (rand() - .5) } print "" } } }'
}
for d in 1 2 3; do paths $d >"$work/p$d.csv"; done
# learn COLUMNS OPTION ...: with pictures in a folder of that name; whether the equation is good does not matter.
learn() {
    d=$1
    shift
    command="hollow sde fit $*"
    "$hollow" sde fit "$work/p$d.csv" -o "$work/s" --plot "$work/p$d" --quiet --threads 1 "$@" >"$out" 2>"$err"
    [ $? -le 1 ] || fail "$command: exit status above 1"
}
learn 1
picture p1 training "of the observations"
lines_of 1 '^plot '
picture p1 equation "set title 'drift f, with 90 % bands'" 'set xlabel "x0" noenhanced'
if [ "$(block curve0 | awk 'NF == 7' | wc -l)" = 201 ]; then pass; else fail "$command: not a curve with its bands"; fi
# The drift falls where there are data, as the paths do.
if block curve0 | awk '$2 != "nan" { if (!n++) first = $2; last = $2 } END { exit !(n > 50 && last < first) }'; then
    pass
else
    fail "$command: the drift does not fall"
fi
picture p1 marginals "set multiplot layout 1,5"
lines_of 5 '^plot \$data[0-9] with boxes'
learn 1 --form network --method fp --iters 30 --hidden 8 --time-dependent --anyway
picture p1 training "Fokker–Planck residual" "set logscale y"
lines_of 2 '^plot '
picture p1 equation "set title 'drift f'" "title 't = 0'" "title 't = 0.55'" "title 't = 1.1'"
learn 2
picture p2 equation "set title 'drift f and observations'" "set title 'diffusion g2'"
if [ "$(block arrows | grep -c .)" = 289 ] && [ "$(block field | grep -c .)" = 3721 ]; then pass; else fail "$command: not the points of a field"; fi
picture p2 marginals "set multiplot layout 3,5" "title 'simulations, t = 1.1'"
lines_of 15 '^plot '
learn 2 --form network --method pseudo-ml --iters 10 --hidden 8 --time-dependent
picture p2 training "Mean negative log-likelihood of a step"
picture p2 equation "observations, t = 0.55'"
learn 3
picture p3 marginals "set multiplot layout 3,5"
lines_of 15 '^plot \$data[0-9]+ with boxes'
absent "$work/p3/equation.png"
PATH=$work/broken:$usual
expect 1 sde fit "$work/p1.csv" -o "$work/s" --plot "$work/failed" --quiet --threads 1
stderr_has "training.png: gnuplot could not draw it"
PATH=$work/nothing
"$hollow" sde fit "$work/p1.csv" -o "$work/s" --plot "$work/none" --threads 1 >"$out" 2>"$err"
PATH=$usual
stderr_has "no pictures: gnuplot is not installed"
finish test_cli_plots
