#!/bin/sh
# Takes a directory that another node of the cluster sends with give.
# Arguments: where it is to be, below the home, a word for this stream, and how
# many bytes it may have at most.
#
# On stdin dlwb says the stream's SHA-256, which the sender has told it. Only
# then does the directory come to its place, and whatever is there goes. In any
# other case, and when dlwb is gone, nothing is left.
LC_ALL=C
export LC_ALL
unset CDPATH
umask 077
target=$1 nonce=$2 most=$3 coming='' others=''
cd "$HOME" || exit 11
stage=./$target.$nonce
in=$HOME/.dlwb/in/$nonce

# forget ends who still reads here, and lets go whoever waits at a pipe.
# shellcheck disable=SC2329
forget() {
	trap '' HUP INT TERM # a second one would end this halfway
	# A signal that finds a fork of dash still as it was born is lost on it. Only
	# a shell that has waited for something forgets a child that ended.
	while [ -n "$coming" ] && kill "$coming" 2>/dev/null; do
		sleep 0.02 2>/dev/null || sleep 1
	done
	# A peer may come to the pipe at any moment, and would wait there for ever:
	# it finds somebody at the other end until it finds the pipe no more.
	[ ! -p "$in/stream" ] || exec 9<>"$in/stream"
	mv "$in" "$in.gone" 2>/dev/null
	for pipe in "$in.gone/copy" "$in.gone/plain"; do
		[ ! -p "$pipe" ] || : <>"$pipe"
	done
	# Who still unpacks would put files where they are being removed.
	for pid in $others; do
		wait "$pid" 2>/dev/null
	done
	rm -rf "$stage" "$in" "$in.gone"
}
trap forget EXIT
trap 'exit 129' HUP INT TERM
trap '' PIPE

mkdir -p "$stage" "$in" && mkfifo "$in/copy" "$in/plain" "$in/stream" || exit 11
digest <"$in/copy" >"$in/sum" &
summing=$!
head -c "$most" <"$in/plain" | tar -xof - -C "$stage" &
unpacking=$!
others="$summing $unpacking"
tee "$in/copy" "$in/plain" <"$in/stream" >/dev/null 2>&1 &
coming=$!
read -r sum || exit 21
if [ ! -d "$in/came" ]; then
	echo "the other node could not reach this one" >&2
	exit 21
fi
wait "$unpacking" || exit 12
wait "$summing"
if [ "$(cat "$in/sum")" != "$sum" ]; then
	echo "what came is not what the other node says it has sent" >&2
	exit 22
fi
rm -rf "./$target" && mv "$stage" "./$target" || exit 14
