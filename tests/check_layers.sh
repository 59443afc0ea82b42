#!/bin/sh
# check_layers.sh ROOT - each layer of src/ includes only headers of its own and earlier layers, or public ones; public
# headers, mpi/ and examples/ include only public headers and those of their own directory; program/ also those of mpi/; cli/ and problems/ those of
# program/, bench/ and paper/ those of program/ and problems/. Programs bench/bench_NAME.c reach internals, like tests. Before it
# looks at ROOT, the check proves itself on a small tree with planted violations.
set -eu

# Prints one "file:line: what is wrong" for each bad #include of the tree $1.
# shellcheck disable=SC2016
find_violations() {
    (
        cd "$1"
        find src include program mpi cli examples problems bench paper -type f \( -name '*.c' -o -name '*.h' -o -name '*.def' -o \
            -name '*.inc' \) ! -path 'bench/bench_*.c' 2>/dev/null | LC_ALL=C sort | tr '\n' '\0' | xargs -0 -r awk '
            BEGIN {
                count = split("base io kernel graph op ad exec nn ode flow learn vae sde report", order, " ")
                for (i = 1; i <= count; i++)
                    rank[order[i]] = i
                may["cli", "program"] = may["program", "mpi"] = may["problems", "program"] = 1
                may["bench", "program"] = may["bench", "problems"] = may["paper", "program"] = may["paper", "problems"] = 1
            }
            function bad(why) { print FILENAME ":" FNR ": " why }
            function exists(path,   line, found) {
                found = (getline line < path) >= 0
                close(path)
                return found
            }
            FNR == 1 {
                parts = split(FILENAME, part, "/")
                layer = part[1] == "src" && parts > 2 ? part[2] : ""
                directory = FILENAME
                sub("[^/]*$", "", directory)
                if (part[1] == "src" && !(layer in rank))
                    bad("not in a layer that check_layers.sh knows")
            }
            /^[ \t]*#[ \t]*include/ {
                name = $0
                sub("^[ \t]*#[ \t]*include[ \t]*", "", name)
                quoted = name ~ /^"/
                if (!match(name, /^"[^"]+"/) && !match(name, /^<[^>]+>/)) {
                    bad("an #include of neither \"...\" nor <...>")
                    next
                }
                name = substr(name, 2, RLENGTH - 2)
                first = name ~ "/" ? substr(name, 1, index(name, "/") - 1) : ""
                if (first == "hollow")
                    next
                if ((part[1], first) in may && quoted && exists(name))
                    next
                if (name ~ "[.][.]/")
                    bad("\"" name "\": write the layer, not a path through ..")
                else if (first in rank) {
                    if (layer == "")
                        bad("\"" name "\": only public headers may be used here")
                    else if (layer in rank && rank[first] > rank[layer])
                        bad("\"" name "\": " layer " comes before " first)
                } else if (quoted && !exists(directory name))
                    bad("\"" name "\": neither public nor of this directory")
            }'
    )
}

self_test() {
    tree=$(mktemp -d)
    trap 'rm -rf "$tree"' EXIT
    mkdir -p "$tree/src/base" "$tree/src/op" "$tree/src/other" "$tree/cli" "$tree/program" "$tree/include/hollow" "$tree/problems" "$tree/bench"
    touch "$tree/cli/own.h" "$tree/program/shared.h" "$tree/src/op/rules.h" "$tree/problems/net.h" "$tree/bench/own.h"
    printf '%s\n' '#include <stdio.h>' '#include "base/base.h"' '#include "hollow/base.h"' '#include "rules.h"' \
        '#include "op/rules.h"' '#include "graph/graph.h" /* earlier */' 'int x; /* #include "nn/net.h" */' >"$tree/src/op/good.c"
    printf '%s\n' '#include "own.h"' '#include "hollow/net.h"' '#include <zlib.h>' '#include "program/shared.h"' >"$tree/cli/good.c"
    printf '%s\n' '#include "own.h"' '#include "program/shared.h"' '#include "problems/net.h"' >"$tree/bench/good.c"
    echo '#include "base/base.h"' >"$tree/bench/bench_good.c"
    good=$(find_violations "$tree")
    if [ -n "$good" ]; then
        echo "self-test: found in a good tree: $good"
        exit 1
    fi
    printf '%s\n' 'int x;' '#include "kernel/kernel.h"' '  #  include <nn/net.h>' '#include "../op/rules.h"' '#include "absent.h"' \
        '#include MACRO' >"$tree/src/base/bad.c"
    echo 'int x;' >"$tree/src/other/bad.c"
    printf '%s\n' '#include "base/base.h"' '#include "bench/own.h"' '#include "problems/net.h"' >"$tree/cli/bad.c"
    printf '%s\n' '#include "base/base.h"' '#include "bench/own.h"' >"$tree/problems/bad.c"
    printf '%s\n' '#include "cli/own.h"' '#include "shared.h"' >"$tree/program/bad.c"
    echo '#include "cli/own.h"' >"$tree/bench/bad.c"
    echo '#include "graph/graph.h"' >"$tree/include/hollow/bad.h"
    expected='bench/bad.c:1 cli/bad.c:1 cli/bad.c:2 cli/bad.c:3 include/hollow/bad.h:1 problems/bad.c:1 problems/bad.c:2 program/bad.c:1 src/base/bad.c:2 src/base/bad.c:3 src/base/bad.c:4 src/base/bad.c:5 src/base/bad.c:6 src/other/bad.c:1'
    found=$(find_violations "$tree" | sed 's/^\([^:]*:[0-9]*\):.*/\1/' | tr '\n' ' ' | sed 's/ $//')
    if [ "$found" != "$expected" ]; then
        echo "self-test: planted: $expected"
        echo "self-test: found:   $found"
        exit 1
    fi
}

self_test
violations=$(find_violations "$1")
if [ -n "$violations" ]; then
    echo "$violations"
    exit 1
fi
