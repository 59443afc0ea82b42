#!/bin/sh
# setup.sh - see that what the build needs is there. On Debian and its relatives install what is missing, as root or by
# sudo; elsewhere say what is missing. Says nothing when nothing is. WITH_CLANG, WITH_FUZZER (clang with libFuzzer), WITH_VALGRIND, WITH_VENV (virtual
# environments and pip for Python) and WITH_CHROMIUM, if they are set, ask for what only some of the tests use.
set -eu

needed=""   # Debian packages
optional="" # the same, without which the library builds and works

have() {
    command -v "$1" >/dev/null 2>&1
}

have cc || have gcc || have clang || needed="$needed gcc libc6-dev"
have cmake || needed="$needed cmake"
have pkg-config || needed="$needed pkg-config"
if have pkg-config; then
    pkg-config --exists zlib || needed="$needed zlib1g-dev"
    pkg-config --exists cmocka || needed="$needed libcmocka-dev"
else
    needed="$needed zlib1g-dev libcmocka-dev"
fi
# Whether clang links programs for libFuzzer and the sanitizers, whose libraries Debian has in a package of their own.
links_fuzzers() {
    program=$(mktemp)
    echo 'int LLVMFuzzerTestOneInput(const unsigned char *bytes, unsigned long size) { return bytes && size > 9 ? -1 : 0; }' |
        clang -fsanitize=fuzzer,address,undefined -x c - -o "$program" >/dev/null 2>&1
    links=$?
    rm -f "$program"
    return $links
}
printf '#include <cvodes/cvodes.h>\n#include <kinsol/kinsol.h>\n' | ${CC:-cc} -E - >/dev/null 2>&1 ||
    needed="$needed libsundials-dev"
[ -z "${WITH_CLANG:-}" ] || have clang || needed="$needed clang"
[ -z "${WITH_FUZZER:-}" ] || links_fuzzers || needed="$needed clang libFuzzer"
[ -z "${WITH_VENV:-}" ] || { python3 -c 'import ensurepip, venv' && python3 -m pip --version; } >/dev/null 2>&1 ||
    needed="$needed python3-venv python3-pip"
[ -z "${WITH_CHROMIUM:-}" ] || have chromium || needed="$needed chromium"
[ -z "${WITH_VALGRIND:-}" ] || have valgrind || needed="$needed valgrind"
have c++ || have g++ || optional="$optional g++"
have gfortran || have flang || optional="$optional gfortran"
have gnuplot || optional="$optional gnuplot-nox"
{ have mpicc && have mpirun; } || optional="$optional libopenmpi-dev openmpi-bin"
/usr/bin/python3 -c 'import numpy' >/dev/null 2>&1 || optional="$optional python3-numpy"

if [ -z "$needed$optional" ]; then
    exit 0
fi

explain() {
    cat >&2 <<END
Missing, by the names of their Debian packages:$needed$optional

Hollow needs
  a C11 compiler (gcc or clang), cmake 3.25 or later, pkg-config,
  zlib (Debian: zlib1g-dev), SUNDIALS 6.4 or later (libsundials-dev)
  and, for the tests, cmocka (libcmocka-dev);
it can do without
  a C++ compiler (tests that the headers work from C++),
  a Fortran compiler (tests the example in Fortran; Debian: gfortran),
  an MPI (training on several ranks; Debian: libopenmpi-dev, openmpi-bin),
  gnuplot (draws pictures; Debian: gnuplot-nox), Python with numpy (tests the Python package; Debian: python3-numpy) and clang-format (for developers: make format).
END
}

if ! have apt-get; then
    explain
    [ -z "$needed" ] || exit 1
    exit 0
fi

as_root=""
if [ "$(id -u)" != 0 ]; then
    as_root=sudo
    if ! have sudo; then
        explain
        echo "Run as root: apt-get install$needed$optional" >&2
        [ -z "$needed" ] || exit 1
        exit 0
    fi
fi

echo "Installing:$needed$optional" >&2
install_packages() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >&2
}
$as_root apt-get update -qq >&2 || echo "apt-get update failed; trying with the lists that are there" >&2
# The package with libFuzzer has the version of the clang that Debian calls clang in its name.
case $needed in
*libFuzzer*)
    version=$(apt-cache depends clang | sed -n 's/.*Depends: clang-\([0-9][0-9]*\)$/\1/p' | head -n 1)
    have clang && version=$(clang -dumpversion | cut -d. -f1)
    needed="${needed%libFuzzer*}libclang-rt-$version-dev${needed##*libFuzzer}"
    ;;
esac
# shellcheck disable=SC2086
if [ -n "$needed" ] && ! install_packages $needed; then
    explain
    exit 1
fi
# shellcheck disable=SC2086
if [ -n "$optional" ] && ! install_packages $optional; then
    echo "Could not install$optional; going on without" >&2
fi
