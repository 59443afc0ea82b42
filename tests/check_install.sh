#!/bin/sh
# check_install.sh ROOT BUILD CMAKE CC FLAGS - install the build to a temporary place, move it, build a small program
# against it by pkg-config (shared, static) and by find_package (both targets), and run it. The shared library exports
# what the public headers declare and nothing else; the archive's symbols all start with hl_.
set -eu
root=$1
build=$2
cmake=$3
cc=$4
flags=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

die() {
    echo "$*"
    exit 1
}

"$cmake" --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/tree" # so that a path kept by the install shows
libdir=$(dirname "$(find "$work/tree" -name libhollow.a)")
[ -f "$libdir/libhollow.a" ] || die "libhollow.a is not installed"
[ -f "$libdir/libhollow.so" ] || die "libhollow.so is not installed"
for header in "$root"/include/hollow/*.h; do
    [ -f "$work/tree/include/hollow/$(basename "$header")" ] || die "$header is not installed"
done
[ -x "$work/tree/bin/hollow" ] || die "the program is not installed"
for name in bench paper; do # which the program finds in the tree that was moved
    "$work/tree/bin/hollow" "$name" --help | grep -q "usage: hollow $name" || die "hollow $name does not work after installation"
done

# Symbols. A sanitizer adds its own.
nm -D --defined-only "$libdir/libhollow.so" | awk '{ print $NF }' | grep -v '^__\(odr_\)*[atu]b*san' |
    LC_ALL=C sort -u >"$work/exported" || true
cat "$root"/include/hollow/*.h | tr '\n' ' ' | grep -o 'HL_API [^(;]*' | grep -o 'hl_[a-z0-9_]*[ ]*$' | tr -d ' ' |
    LC_ALL=C sort -u >"$work/declared" || true
[ -s "$work/declared" ] || die "found no HL_API declaration"
diff "$work/declared" "$work/exported" >"$work/diff" ||
    die "declared (<) in the headers and exported (>) by libhollow.so differ:
$(grep '^[<>]' "$work/diff")"
nm -g --defined-only "$libdir/libhollow.a" 2>/dev/null | awk 'NF == 3 { print $3 }' | grep -v '^hl_' |
    grep -v '^__\(odr_\)*[atu]b*san' >"$work/foreign" || true
[ ! -s "$work/foreign" ] || die "global symbols of libhollow.a that do not start with hl_: $(tr '\n' ' ' <"$work/foreign")"

# A user's program.
mkdir "$work/user"
cat >"$work/user/main.c" <<'END'
#include <stdio.h>
#include <hollow/base.h>

int main(void)
{
    hl_context_options options = { .threads = 2 };
    hl_context *context;

    if (hl_context_create(&options, &context))
        return 1;
    if (hl_context_threads(context) != 2)
        return 2;
    printf("%s\n", hl_status_text(HL_OK));
    hl_context_free(context);
    return 0;
}
END
cat >"$work/user/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(user C)
find_package(hollow 0.1 REQUIRED)
add_executable(with_shared main.c)
target_link_libraries(with_shared PRIVATE hollow::hollow)
add_executable(with_static main.c)
target_link_libraries(with_static PRIVATE hollow::hollow_static)
END

runs() {
    LD_LIBRARY_PATH=$libdir "$1" >"$work/output" || die "$2: does not run"
    [ "$(cat "$work/output")" = success ] || die "$2: wrong output"
}

PKG_CONFIG_PATH=$libdir/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
export PKG_CONFIG_PATH
# shellcheck disable=SC2046,SC2086
"$cc" -std=c11 $flags $(pkg-config --cflags hollow) "$work/user/main.c" -o "$work/pc_shared" $(pkg-config --libs hollow)
runs "$work/pc_shared" "pkg-config, shared"
# shellcheck disable=SC2046,SC2086
"$cc" -std=c11 $flags $(pkg-config --static --cflags hollow) "$work/user/main.c" -o "$work/pc_static" \
    $(pkg-config --static --libs hollow | sed "s|-lhollow|$libdir/libhollow.a|")
runs "$work/pc_static" "pkg-config, static"

"$cmake" -S "$work/user" -B "$work/user/build" -DCMAKE_PREFIX_PATH="$work/tree" -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_C_FLAGS="$flags" >"$work/log" 2>&1 || die "$(cat "$work/log")"
"$cmake" --build "$work/user/build" >"$work/log" 2>&1 || die "$(cat "$work/log")"
runs "$work/user/build/with_shared" "find_package, hollow::hollow"
runs "$work/user/build/with_static" "find_package, hollow::hollow_static"
