#!/bin/sh
# test_cli_terminal.sh PROGRAM - the progress line in terminals of several widths, in a dumb one and in a pipe.
set -u
. "$(dirname "$0")/cli_support.sh"
if ! python3 -c 'import fcntl, pty, termios; pty.openpty()' 2>/dev/null; then
    echo "test_cli_terminal: needs Python with pseudo-terminals"
    exit 77
fi

# in_terminal TERM WIDTH CONDITION ARGUMENT ...: of what in_terminal.py tells about the call, the condition holds.
in_terminal() {
    term=$1
    wide=$2
    condition=$3
    shift 3
    command="hollow $* in a terminal '$term' of width $wide"
    TERM=$term python3 "$(dirname "$0")/in_terminal.py" "$wide" "$hollow" "$@" >"$work/terminal" 2>"$err"
    json "$work/terminal" "$condition"
}

data=$work/data.csv
(echo "a,b" && awk 'BEGIN { srand(3); for (i = 0; i < 400; i++) {
    u = sqrt(-2 * log(1 - rand())); v = 6.283185307 * rand(); x = u * cos(v); y = u * sin(v)
    printf "%.9g,%.9g\n", x, 0.5 * y + x * x } }') >"$data"
expect 0 fit "$data" -o "$work/m" --iters 20 --batch 64 --hidden 8 --width 8 --features 4 --layers 1 --threads 1
expect 0 sample "$work/m" -n 120000 --threads 1 --out "$work/many.csv"

# One line that is drawn again in place, narrower than the terminal, with the time left, at most ten times a second; then it
# is gone.
place='j["status"] == 0 and j["widest"] < width and j["drawn"] <= 10 * j["seconds"] + 2 and (j["eta"] >= 1 or j["seconds"] < 0.5)'
for width in 40 80 200; do
    in_terminal xterm $width "(lambda width: $place and j[\"scrolled\"] == 0)($width)" sample "$work/m" -n 120000 --threads 1
    in_terminal xterm $width "(lambda width: $place and j[\"scrolled\"] == 1 and \"mean log p\" in j[\"last\"])($width)" \
        logp "$work/m" "$work/many.csv" --threads 1
done
# A training says its size first and its outcome last; between them is one line, whose last state stays.
small="--members flow --iters 60 --batch 64 --hidden 8 --width 8 --features 4 --layers 1 --threads 1"
for width in 40 80 200; do
    # shellcheck disable=SC2086
    in_terminal xterm $width "(lambda width: $place and j[\"scrolled\"] <= 6 and \"validation\" in j[\"last\"])($width)" \
        fit "$data" -o "$work/t" $small
done
# shellcheck disable=SC2086
in_terminal xterm 80 'j["status"] == 0 and j["drawn"] == 0 and j["scrolled"] == 0' fit "$data" -o "$work/t" $small --quiet
# Training draws the same line; its other messages stay.
fit="--iters 400 --batch 64 --hidden 8 --width 8 --features 4 --layers 1 --threads 1 --members flow"
(echo "trajectory,t,x" && awk 'BEGIN { srand(1); for (i = 0; i < 20; i++) { x = rand(); for (t = 0; t < 20; t++) {
    print i "," t / 10 "," x; x += -0.1 * x + 0.1 * (rand() - 0.5) } } }') >"$work/paths.csv"
for width in 40 80 200; do
    # shellcheck disable=SC2086
    in_terminal xterm $width "(lambda width: $place)($width)" fit "$data" -o "$work/f" $fit
    in_terminal xterm $width "(lambda width: j[\"widest\"] < width and j[\"drawn\"] <= 10 * j[\"seconds\"] + 2)($width)" \
        sde fit "$work/paths.csv" -o "$work/s" --method pseudo-ml --iters 400 --hidden 8
done
# A terminal that does not know its width: that of COLUMNS, or 80.
COLUMNS=30 in_terminal xterm 0 "(lambda width: $place)(30)" sample "$work/m" -n 120000 --threads 1
in_terminal xterm 0 "(lambda width: $place)(80)" sample "$work/m" -n 120000 --threads 1
# A dumb terminal gets plain lines, and far fewer.
for term in dumb ""; do
    in_terminal "$term" 80 'j["status"] == 0 and j["drawn"] == 0 and j["escapes"] == 0' sample "$work/m" -n 120000 --threads 1
done
# So does a pipe.
"$hollow" sample "$work/m" -n 120000 --threads 1 2>&1 >/dev/null | cat >"$err"
command="hollow sample in a pipe"
stderr_empty

finish test_cli_terminal
