#!/usr/bin/env bash
# Break the rules on purpose, one at a time, and see that test_ops or test_diff fails.
#
#     scripts/mutate.sh [pattern]      only mutations whose line matches the pattern
#
# Works on a copy: builds the library and the two tests once, then compiles only the mutated file and links it before the
# archive. A mutation is a line `file | sed expression`; one that changes nothing, or does not compile, is an error of the
# list. Prints the survivors and exits 1 if there are any.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pattern=${1:-.}
tests="test_ops test_diff"

mkdir "$work/tree"
cp -r "$root/CMakeLists.txt" "$root/cmake" "$root/include" "$root/src" "$root/tests" "$work/tree/"
cmake -S "$work/tree" -B "$work/build" -DCMAKE_BUILD_TYPE=Release >"$work/log" 2>&1 &&
    make -C "$work/build" -j2 $tests >>"$work/log" 2>&1 || { tail "$work/log"; exit 2; }

# Killed: some test fails, crashes, or does not end. The first failure is enough.
killed() {
    for t in $tests; do
        cc -o "$work/$t" "$work/mutant.o" "$work/build/tests/CMakeFiles/$t.dir/$t.c.o" "$work/build/libhollow.a" \
            $(pkg-config --libs cmocka zlib) -lm -pthread || return 2
        { timeout 120 "$work/$t" 2>&1; echo "status $?"; } | grep -m1 -qE 'FAILED|status [1-9]' && return 0
    done
    return 1
}

count=0 survivors=0 errors=0
while IFS='|' read -r file expression; do
    file=$(echo $file)
    case $file in '' | '#'*) continue ;; esac
    echo "$file $expression" | grep -q -- "$pattern" || continue
    count=$((count + 1))
    sed -E "$expression" "$work/tree/src/$file" >"$work/tree/src/${file%/*}/mutant.c"
    if cmp -s "$work/tree/src/$file" "$work/tree/src/${file%/*}/mutant.c"; then
        echo "changes nothing: $file $expression"
        errors=$((errors + 1))
    elif ! cc -std=c11 -O1 -w -D_POSIX_C_SOURCE=200809L -I"$work/tree/include" -I"$work/tree/src" -c \
        "$work/tree/src/${file%/*}/mutant.c" -o "$work/mutant.o" 2>"$work/log"; then
        echo "does not compile: $file $expression"
        head -3 "$work/log"
        errors=$((errors + 1))
    else
        killed
        case $? in
        0) ;;
        1) echo "SURVIVES: $file $expression"; survivors=$((survivors + 1)) ;;
        *) echo "does not link: $file $expression"; errors=$((errors + 1)) ;;
        esac
    fi
    rm -f "$work/tree/src/${file%/*}/mutant.c"
done <"$root/scripts/mutations.txt"
echo "$count mutations, $survivors survive, $errors in error"
[ "$survivors" -eq 0 ] && [ "$errors" -eq 0 ]
