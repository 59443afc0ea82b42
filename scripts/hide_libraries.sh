#!/bin/sh
# hide_libraries.sh COMMAND... - run a command without Debian's SUNDIALS and an installed hollow, in a mount namespace in which
# their files are empty. Without the right to make one the command runs all the same, and this says so.
set -eu
if [ "${HIDE_LIBRARIES_INSIDE:-}" = 1 ]; then
    for file in $(find -L /usr/lib /lib /usr/local/lib -name 'libsundials*' -o -name 'libhollow*' 2>/dev/null); do
        mount --bind /dev/null "$file"
    done
    exec "$@"
fi
if unshare -m true 2>/dev/null; then
    HIDE_LIBRARIES_INSIDE=1 exec unshare -m "$0" "$@"
fi
echo "cannot make a mount namespace; the libraries are not hidden"
exec "$@"
