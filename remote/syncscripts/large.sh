#!/bin/sh
# Takes one large file for a project's code directory, so that what came before
# a connection was lost need not come again.
# Arguments: the code directory; the word for this file; how many bytes of what
# is sent are here already; how many it has in all; the file's SHA-256; how it
# comes (gzip, plain); the path of the older file and a list of what to put
# together ("" where all is sent); and then one of these:
#   (nothing)       it comes on stdin
#   to NONCE PEER…  and also goes on to these nodes
#   from NONCE      it comes from another node; stdin says when that is through
# Leaves .dlwb-large/WORD.ok in the code directory, which is the file, or
# .dlwb-large/WORD.part, which is what came of it.
LC_ALL=C
export LC_ALL
unset CDPATH
umask 022
dir=$1 word=$2 at=$3 size=$4 sum=$5 how=$6 old=$7 spans=$8 way=${9-}
shift 8
[ $# -eq 0 ] || shift
stop() {
	cat >/dev/null
	exit "$1"
}
cd "$HOME" || stop 11
mkdir -p "$dir/.dlwb-large" || stop 11
cd "$dir" || stop 11
part=.dlwb-large/$word.part
made=.dlwb-large/$word.$$
in=$HOME/.dlwb/in/${1-none}
trap 'trap "" HUP INT TERM; rm -f "$made"' EXIT
trap 'exit 129' HUP INT TERM
trap '' PIPE
find .dlwb-large -type f -mmin +20160 -exec rm -f {} + 2>/dev/null

: >>"$part" || stop 11
dd if=/dev/null of="$part" bs=1 seek="$at" 2>/dev/null || stop 11

# take appends what comes, and no more of what another node sends than there
# should be; without a list its digest is made in passing.
take() {
	if [ "$how" = gzip ]; then
		gzip -dc | bounded
	elif [ "$way" = from ]; then
		bounded
	else
		append
	fi
}
bounded() { head -c "$((size - at))" | append; }
append() {
	if [ -n "$spans" ]; then
		cat >>"$part"
	elif [ "$at" = 0 ]; then
		tee -a "$part" | digest >"$made"
	else
		tee -a "$part" | { head -c "$at" "$part"; cat; } | digest >"$made"
	fi
}

# A peer may come to the pipe at any moment: it finds somebody at the other end
# until it finds the pipe no more. A second signal would end this halfway.
forget() {
	trap '' HUP INT TERM
	[ ! -p "$in/stream" ] || exec 9<>"$in/stream"
	rm -rf "$made" "$in"
}

from_peer() {
	trap forget EXIT
	if ! { (umask 077 && mkdir -p "$in") && mkfifo "$in/stream"; }; then exit 11; fi
	take <"$in/stream" &
	taking=$!
	read -r _ || exit 21
	if [ ! -d "$in/came" ]; then
		echo "no other node has sent the file" >&2
		exit 21
	fi
	wait $taking
}

case $way in
from) from_peer ;;
to) sh "$HOME/.dlwb/bin/relay" "$@" | take ;;
*) take ;;
esac
if [ "$(($(wc -c <"$part")))" != "$size" ]; then
	echo "the stream ended early" >&2
	stop 13
fi

# build puts the file together.
build() {
	done=1
	printf %s "$spans" | while read -r what off len; do
		if [ "$what" = old ]; then
			tail -c "+$((off + 1))" "./$old"
		else
			tail -c "+$done" "$part"
			done=$((done + len))
		fi | head -c "$len"
	done
}
if [ -n "$spans" ]; then
	build 2>/dev/null | tee "$made" | digest >"$made.sum"
	have=$(cat "$made.sum")
	rm -f "$made.sum"
	[ "$have" != "$sum" ] || mv -f "$made" "$part" || exit 14
else
	have=$(cat "$made")
fi
if [ "$have" != "$sum" ]; then
	rm -f "$part"
	echo "what came is not the file that was to be sent" >&2
	exit 22
fi
mv -f "$part" ".dlwb-large/$word.ok"
