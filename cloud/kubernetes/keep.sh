#!/bin/sh
# Writes to its standard output, as a tar, what this replica has written: keep.py says
# how. Without Python all of it comes each time, and a list that says nothing but that it
# is the end: a connection that is cut looks like one.
cd "$(dirname "$0")" || exit 66
work=$(pwd)
if command -v python3 >/dev/null 2>&1; then exec python3 keep.py "$@"; fi
[ "$1" != note ] || exit 0
number=$1 code=$2
set --
if [ "$number" = 0 ]; then
	while IFS= read -r path; do
		if [ -d "$code/$path" ]; then
			set -- "$@" "./$path/." # also where it is a link to one
		elif [ -e "$code/$path" ]; then
			set -- "$@" "./$path"
		fi
	done <keep
fi
[ $# = 0 ] || set -- -C "$code" "$@"
exec tar -cf - "$@" -C "$work" .dlwb-node .dlwb-list
