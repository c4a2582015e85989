#!/bin/sh
# Sends what is in a directory to other nodes of the cluster, each of which
# waits for it with take.
# Arguments: the directory, below the home, a word for this stream, PEER…
#
# Says the SHA-256 of what it sent, once it has sent all of it. Nothing is used
# before that. Leaves nothing.
LC_ALL=C
export LC_ALL
unset CDPATH
dir=$1 nonce=$2
shift 2
cd "$HOME" && cd "./$dir" || exit 11
pipes=$(mktemp -d "${TMPDIR:-/tmp}/dlwb-give.XXXXXX") || exit 11
trap 'trap "" HUP INT TERM; rm -rf "$pipes"' EXIT
trap 'exit 129' HUP INT TERM
trap '' PIPE # with nobody to take it any more, cleaning up still comes next
mkfifo "$pipes/copy" || exit 11

digest <"$pipes/copy" >"$pipes/sum" &
{ tar -cf - . && : >"$pipes/whole"; } | tee "$pipes/copy" 2>/dev/null |
	sh "$HOME/.dlwb/bin/relay" "$nonce" "$@" >/dev/null
if [ ! -f "$pipes/whole" ]; then
	echo "the directory could not be read to its end" >&2
	exit 12
fi
wait
cat "$pipes/sum"
