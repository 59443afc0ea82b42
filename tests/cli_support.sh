# cli_support.sh - what the tests of the program share; read by them with the program as $1. Prints each failure; `finish` at the
# end how many checks passed and failed.
hollow=$1
work=$(mktemp -d) || exit 1
trap 'chmod -R u+w "$work" 2>/dev/null; rm -rf "$work"' EXIT
out=$work/stdout
err=$work/stderr
passed=0
failed=0

pass() {
    passed=$((passed + 1))
}

fail() {
    failed=$((failed + 1))
    echo "FAILED: $*"
    [ ! -s "$err" ] || sed 's/^/  stderr: /' "$err" | head -5
}

# expect STATUS ARGUMENT ...: run hollow, check its exit status.
expect() {
    status=$1
    shift
    command="hollow $*"
    "$hollow" "$@" >"$out" 2>"$err"
    got=$?
    if [ "$got" = "$status" ]; then pass; else fail "$command: exit status $got instead of $status"; fi
}

# The last command's output has a text, or has nothing.
stdout_has() {
    if grep -qF -e "$1" "$out"; then pass; else fail "$command: no '$1' on stdout"; fi
}
stderr_has() {
    if grep -qF -e "$1" "$err"; then pass; else fail "$command: no '$1' on stderr"; fi
}
stdout_empty() {
    if [ ! -s "$out" ]; then pass; else fail "$command: wrote to stdout"; fi
}
stderr_empty() {
    if [ ! -s "$err" ]; then pass; else fail "$command: wrote to stderr"; fi
}

# json FILE CONDITION: every line is JSON, of which the Python expression about j holds. Without Python: looks like JSON.
have_python=no
if python3 -c 'import json' >/dev/null 2>&1; then have_python=yes; fi
json() {
    if [ $have_python = yes ]; then
        if python3 -c '
import json, sys
lines = open(sys.argv[1]).read().splitlines()
assert lines
for line in lines:
    j = json.loads(line)
    assert eval(sys.argv[2]), sys.argv[2]
' "$1" "$2" 2>"$work/python"; then pass; else fail "$command: JSON: $2"; fi
    elif [ -s "$1" ] && ! grep -qv '^{.*}$' "$1"; then
        pass
    else
        fail "$command: not JSON"
    fi
}

file_there() {
    if [ -s "$1" ]; then pass; else fail "$command: $1 is missing or empty"; fi
}

# same FILE FILE: equal to the last byte.
same() {
    if cmp -s "$1" "$2"; then pass; else fail "$command: $1 and $2 differ"; fi
}
absent() {
    if [ ! -e "$1" ]; then pass; else fail "$command: $1 is there"; fi
}

# interrupted ARGUMENT ...: exits with 130 within 15 seconds of the signal. The shell's background jobs ignore SIGINT, so
# Python gives it back, if there is one.
restore=
if [ $have_python = yes ]; then
    restore="python3 -c 'import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])'"
fi
interrupted() {
    command="hollow $* and Ctrl-C"
    eval "$restore \"\$hollow\" \"\$@\" >\"\$out\" 2>\"\$err\" &"
    pid=$!
    sleep 1
    kill -INT $pid
    (
        sleep 15
        kill -KILL $pid
    ) 2>/dev/null &
    watch=$!
    wait $pid
    got=$?
    kill $watch 2>/dev/null
    if [ $got = 130 ]; then pass; else fail "$command: exit status $got instead of 130"; fi
    stderr_has "stopped"
}

finish() {
    echo "$1: $passed passed, $failed failed"
    [ $failed = 0 ]
}
