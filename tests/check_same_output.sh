#!/bin/sh
# check_same_output.sh COMMAND COMMAND - both succeed and print the same, but for the blanks.
set -eu
one=$(eval "$1") || exit 1
two=$(eval "$2") || exit 1
printf '%s\n' "$two"
[ -n "$one" ] && [ "$(printf '%s' "$one" | tr -s ' ')" = "$(printf '%s' "$two" | tr -s ' ')" ]
