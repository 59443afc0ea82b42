#!/bin/sh
# test_python.sh ROOT LIBRARY PROGRAM CC - the Python package from the source tree, with Debian's python3 and numpy and the library that
# was built. 77 where there is no numpy.
set -eu
root=$1
HOLLOW_LIBRARY=$2
HOLLOW_PROGRAM=$3
CC=$4
export HOLLOW_LIBRARY HOLLOW_PROGRAM CC
for python in /usr/bin/python3 python3; do
    if command -v "$python" >/dev/null 2>&1 && "$python" -c 'import numpy' >/dev/null 2>&1; then
        export PYTHONPATH="$root/python" PYTHONDONTWRITEBYTECODE=1
        exec "$python" -W error::SyntaxWarning -m unittest discover -s "$root/python/tests/core"
    fi
done
echo "python3 with numpy is not installed (Debian: python3-numpy)"
exit 77
