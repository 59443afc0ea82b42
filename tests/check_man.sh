#!/bin/sh
# check_man.sh PROGRAM PAGE - the manual page has, in the section of each command, the options that its help lists, and no others.
# The commands are those that the program completes. Options of all commands (--json, --quiet) stand in the page's description.
set -eu
program=$1
page=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
seen=0

# Options that stand in lines like $2 of the section whose heading is $1.
page_options() {
    awk -v section="$1" -v line="$2" '/^\.S[sh]/ { inside = $0 == section } inside && $0 ~ line {
        for (i = 1; i < NF; i++) if ($i ~ /^\.?Fl$/) print "-" $(i + 1) }' "$page" | sort -u
}

compare() {
    seen=$((seen + 1))
    # shellcheck disable=SC2086
    "$program" $1 --help | sed -n 's/^  \(--\{0,1\}[a-z][a-z0-9-]*\).*/\1/p' | grep -v '^--help$' | sort -u >"$work/help"
    page_options ".Ss hollow $1" '^[.]It Fl' >"$work/page"
    page_options ".Sh DESCRIPTION" '^[.]Fl' | grep -e '^--json$' -e '^--quiet$' | sort -u "$work/page" - >"$work/all"
    if ! comm -23 "$work/help" "$work/all" >"$work/missing" || [ -s "$work/missing" ]; then
        echo "hollow $1: not in the manual page: $(tr '\n' ' ' <"$work/missing")"
        failed=1
    fi
    if ! comm -13 "$work/help" "$work/page" >"$work/extra" || [ -s "$work/extra" ]; then
        echo "hollow $1: in the manual page alone: $(tr '\n' ' ' <"$work/extra")"
        failed=1
    fi
}

for name in $("$program" --complete); do
    case $("$program" "$name" --complete) in
    -*) compare "$name" ;;
    *) for sub in $("$program" "$name" --complete); do compare "$name $sub"; done ;;
    esac
done
if [ "$seen" -lt 15 ]; then
    echo "only $seen commands were compared"
    failed=1
fi
exit $failed
