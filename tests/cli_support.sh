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

# wait_for CONDITION ...: until the command succeeds; gives up after minutes, as on a busy machine everything is slow.
wait_for() {
    tries=0
    until "$@" || [ $tries -ge 3000 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
}
# ready_for BIT PID PROGRAM [FILE]: the process runs PROGRAM and handles the signal of this bit of SigCgt, and FILE, if there is one, has something
# in it; or the process is over.
ready_for() {
    caught=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$2/status" 2>/dev/null)
    [ -z "$caught" ] || { grep -qx "Name:.$3" "/proc/$2/status" && [ $((0x$caught & $1)) != 0 ] && { [ -z "$4" ] || [ -s "$4" ]; }; }
}

# signalled NAME BIT STATUS ARGUMENT ...: the signal stops hollow with this exit status. It comes a second after it is handled and, with
# --log FILE, after the first iteration. The shell's background jobs ignore SIGINT, which env gives back.
signalled() {
    name=$1 bit=$2 status=$3
    shift 3
    command="hollow $* and SIG$name"
    log=
    case $1 in
    bench | paper) program=hollow-$1 ;; # which hollow becomes
    *) program=$(basename "$hollow") ;;
    esac
    for argument in "$@"; do
        [ "$log" != next ] || log=$argument
        [ "$argument" != --log ] || log=next
    done
    env --default-signal=INT "$hollow" "$@" >"$out" 2>"$err" &
    pid=$!
    wait_for ready_for "$bit" $pid "$program" "$log"
    sleep 1
    kill -"$name" $pid
    ( # whose sleep must not outlive it and keep the test's output open
        trap 'kill $limit' TERM
        sleep 200 &
        limit=$!
        wait $limit && kill -KILL $pid
    ) >/dev/null 2>&1 &
    watch=$!
    wait $pid
    got=$?
    kill $watch 2>/dev/null
    if [ $got = "$status" ]; then pass; else fail "$command: exit status $got instead of $status"; fi
    stderr_has "stopped"
}
interrupted() {
    signalled INT 2 130 "$@"
}
terminated() {
    signalled TERM 16384 143 "$@"
}

# killed_after_checkpoint MODEL ARGUMENT ...: SIGKILL some time after the first checkpoint; again if the run was over before.
killed_after_checkpoint() {
    model_killed=$1
    shift
    for attempt in 1 2 3 4 5; do
        rm -f "$model_killed" "$model_killed.ckpt"
        "$hollow" "$@" -o "$model_killed" >"$out" 2>"$err" &
        pid=$!
        wait_for test -e "$model_killed.ckpt"
        kill -KILL $pid 2>/dev/null
        wait $pid 2>/dev/null
        [ -e "$model_killed" ] || break
    done
}

finish() {
    echo "$1: $passed passed, $failed failed"
    [ $failed = 0 ]
}
