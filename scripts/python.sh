#!/usr/bin/env bash
# python.sh test|wheel|reachable BUILD - the Python package with what PyPI has.
#   reachable   whether PyPI, or the index that pip is set up for, answers
#   test        a virtual environment in BUILD/venv, then ruff, mypy and all tests, with the library in BUILD
#   wheel       a wheel with all libraries in it, in BUILD/dist, and a test of it in an environment of its own in which
#               Debian's SUNDIALS is hidden (as root)
set -euo pipefail
verb=$1
build=$(realpath -m "$2")
root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
cd "$root"
python=${PYTHON:-python3}
venv=$build/venv

make_environment() {
    if ! cmp -s python/requirements.txt "$venv/requirements.txt"; then
        "$python" -m venv "$venv"
        "$venv/bin/pip" install -qq --prefer-binary -r python/requirements.txt
        cp python/requirements.txt "$venv/requirements.txt"
    fi
}

reachable() {
    timeout 40 "$python" -m pip download -q --no-deps --timeout 15 --retries 0 -d "$1" iniconfig >/dev/null 2>&1
}

case $verb in
reachable)
    directory=$(mktemp -d)
    trap 'rm -rf "$directory"' EXIT
    reachable "$directory"
    ;;
test)
    make_environment
    "$venv/bin/ruff" check -q
    "$venv/bin/ruff" format -q --check
    "$venv/bin/mypy" --no-error-summary --cache-dir "$build/mypy"
    HOLLOW_LIBRARY=$build/libhollow.so HOLLOW_PROGRAM=$build/hollow PYTHONPATH=$root/python PYTHONDONTWRITEBYTECODE=1 \
        "$venv/bin/python" -m pytest -q -p no:cacheprovider "$root/python/tests"
    ;;
wheel)
    make_environment
    rm -rf "$build/dist"
    "$venv/bin/python" -m build --wheel --no-isolation -o "$build/dist/plain" . >"$build/wheel.log" 2>&1 ||
        { tail -30 "$build/wheel.log"; exit 1; }
    PATH=$venv/bin:$PATH "$venv/bin/auditwheel" repair -w "$build/dist" "$build"/dist/plain/*.whl >"$build/auditwheel.log" 2>&1 ||
        { cat "$build/auditwheel.log"; exit 1; }
    wheel=$(ls "$build"/dist/*.whl)
    "$venv/bin/auditwheel" show "$wheel" | tr '\n' ' ' | sed 's/  */ /g'
    size=$(stat -c %s "$wheel")
    echo
    echo "$wheel: $size bytes"
    [ "$size" -lt 2000000 ] || { echo "the wheel is larger than 2 MB"; exit 1; }
    "$python" -m venv --clear "$build/fresh"
    "$build/fresh/bin/pip" install -qq --prefer-binary "$wheel"
    scripts/hide_libraries.sh "$build/fresh/bin/python" -I "$root/python/tests/wheel.py"
    ;;
*)
    echo "usage: python.sh test|wheel|reachable BUILD" >&2
    exit 2
    ;;
esac
