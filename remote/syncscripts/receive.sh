#!/bin/sh
# Takes files for a project's code directory and puts them in place.
# Arguments: the code directory, the name of its state, a word for this stream,
# how the files come (tar, gzip: on stdin; sftp: they are there already), the
# name of the directory for what has to make way, and then one of these:
#   (nothing)    the stream is for this node alone
#   to PEER…     it also goes on to these nodes
#   from MOST    it comes from another node, and unpacked it has at most so many
#     bytes. On stdin dlwb says, in a line, the stream's SHA-256 once it has sent
#     all of it, and whether the instructions in it are this node's ("same") or
#     others follow ("own"), and then in a line that the other node is through.
#
# Everything is unpacked beside its place first and then renamed, so that a
# stream that breaks off changes nothing and no file is ever seen half-written.
LC_ALL=C TZ=UTC0
export LC_ALL TZ
unset CDPATH
umask 022
stop() {
	cat >/dev/null # so that the sender hears our words and not a closed pipe
	exit "$1"
}
dir=$1 id=$2 nonce=$3 how=$4 aside=$5 way=${6-}
shift 5
[ $# -eq 0 ] || shift
cd "$HOME" || stop 11
mkdir -p "$dir" || stop 11
cd "$dir" || stop 11
stage=$PWD/.dlwb-in.$nonce
in=$HOME/.dlwb/in/$nonce
trap 'trap "" HUP INT TERM; rm -rf "$stage"' EXIT
trap 'exit 129' HUP INT TERM
trap '' PIPE # with nobody to hear our words, cleaning up still comes next

# What a crash left behind. Younger ones may belong to another dlwb.
find . -maxdepth 1 -name '.dlwb-in.*' -mmin +720 -exec rm -rf {} + 2>/dev/null

unpack() {
	if [ "$how" = gzip ]; then gzip -dc | "$@"; else "$@"; fi
}
into_stage() { tar -xopf - -C "$stage"; }
bounded() { head -c "$most" | into_stage; }

# forget lets go whoever still waits at one of the pipes. A peer may come at any
# moment: it finds somebody at the other end until it finds the pipe no more.
# A second signal would end it halfway.
forget() {
	trap '' HUP INT TERM
	[ ! -p "$in/stream" ] || exec 9<>"$in/stream"
	mv "$in" "$in.gone" 2>/dev/null
	[ ! -p "$in.gone/copy" ] || : <>"$in.gone/copy"
	rm -rf "$stage" "$in" "$in.gone"
}

# from_peer unpacks what another node sends. Nothing of it is used before dlwb
# itself has said what it must be.
from_peer() {
	most=$1
	trap forget EXIT
	if ! { (umask 077 && mkdir -p "$in") && mkfifo "$in/copy" "$in/stream"; }; then exit 11; fi
	digest <"$in/copy" >"$in/sum" &
	summing=$!
	{ tee "$in/copy" <"$in/stream" | unpack bounded; } &
	unpacking=$!
	read -r sum whose || exit 21
	if [ ! -d "$in/came" ] || [ "$whose" = own ]; then
		read -r _ || exit 21
	fi
	if [ ! -d "$in/came" ]; then
		echo "no other node has sent the files" >&2
		exit 21
	fi
	wait $unpacking || exit 12
	wait $summing
	if [ "$(cat "$in/sum")" != "$sum" ]; then
		echo "what another node has sent is not what was to be sent" >&2
		exit 22
	fi
	if [ "$whose" = own ]; then
		rm -f "$stage/apply"
		into_stage || exit 12
	fi
}

mkdir -p "$stage" || stop 11
case $way in
from) from_peer "$@" ;;
to) sh "$HOME/.dlwb/bin/relay" "$nonce" "$@" | unpack into_stage || stop 12 ;;
*) [ "$how" = sftp ] || unpack into_stage || stop 12 ;;
esac
if [ ! -f "$stage/apply" ]; then
	echo "the stream ended early" >&2
	stop 13
fi
sh "$stage/apply" "$stage" "$HOME/.dlwb/sync/$id" "$HOME/.dlwb/kept/$id/$aside" || stop 14
