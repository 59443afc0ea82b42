#!/bin/sh
# check_headers.sh ROOT CC - each public header compiles alone, and twice, as C11 and as C++11 without a warning, and has
# fewer than 300 lines. Exits with 77 (skipped) if only the C++ compiler is missing.
set -eu
root=$1
cc=$2
cxx=${CXX:-c++}
flags="-Wall -Wextra -Wpedantic -Werror -fsyntax-only"
failed=0

# $1: compiler, $2: language, $3: standard, $4: header
compiles() {
    # shellcheck disable=SC2086
    if ! printf '#include "hollow/%s"\n#include "hollow/%s"\n' "$4" "$4" |
        "$1" -x "$2" -std="$3" $flags -I "$root/include" -; then
        echo "include/hollow/$4: does not compile alone as $3"
        failed=1
    fi
}

have_cxx=yes
command -v "$cxx" >/dev/null || have_cxx=no
for path in "$root"/include/hollow/*.h; do
    header=$(basename "$path")
    lines=$(wc -l <"$path")
    if [ "$lines" -ge 300 ]; then
        echo "include/hollow/$header: $lines lines, not under 300"
        failed=1
    fi
    compiles "$cc" c c11 "$header"
    [ $have_cxx = no ] || compiles "$cxx" c++ c++11 "$header"
done
[ $failed = 0 ] || exit 1
if [ $have_cxx = no ]; then
    echo "skipped: no C++ compiler ($cxx)"
    exit 77
fi
