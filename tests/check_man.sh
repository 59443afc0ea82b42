#!/bin/sh
# check_man.sh PROGRAM PAGE COMMAND ... - the manual page has, in the section of each command, the options that its help lists, and
# no others.
set -eu
program=$1
page=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
for name; do
    # shellcheck disable=SC2086
    "$program" $name --help | sed -n 's/^  \(--\{0,1\}[a-z][a-z0-9-]*\).*/\1/p' | grep -v '^--help$' | sort >"$work/help"
    awk -v section=".Ss hollow $name" '/^\.S[sh]/ { inside = $0 == section } inside && /^\.It Fl/ {
        for (i = 2; i < NF; i++) if ($i == "Fl") print "-" $(i + 1) }' "$page" | sort >"$work/page"
    if ! diff "$work/help" "$work/page"; then
        echo "hollow $name: the help (<) and the manual page (>) list other options"
        failed=1
    fi
done
exit $failed
