#!/bin/sh
# relay: NONCE PEER…: copies its input to its output and on to other nodes of
# the cluster, each of which waits for it under the name NONCE.
#
# Called by a sync's receiving command on the node that gets the stream from
# dlwb, by give on a node that has it, and by peer on a node that gets it from
# there. With many peers it tells the first few, and these tell the rest. A peer
# that can't be reached, or that does not go on reading, is left out after some
# seconds: dlwb hears of that from the peer itself, and sees to it directly. Says
# on stderr which those were; leaves nothing.
nonce=$1
shift
fan=8
dir=$HOME/.dlwb
# With nobody at the other end of one pipe, the others still get theirs.
trap '' PIPE
pipes=$(mktemp -d "${TMPDIR:-/tmp}/dlwb-relay.XXXXXX") || exec cat
trap 'trap "" HUP INT TERM; rm -rf "$pipes"' EXIT
trap 'exit 129' HUP INT TERM

# pass NAME PIPE REST…: takes the stream out of a pipe to a node, which passes
# it on to the rest.
pass() {
    name=$1 pipe=$2
    shift 2
    # Read in every case, so that the one who fills it does not wait for ever.
    exec <"$pipe"
    while read -r known host port user; do
        [ "$known" != "$name" ] || break
    done <"$dir/peers"
    if [ "$known" != "$name" ]; then
        echo "$name: not a node of this cluster" >&2
        return 1
    fi
    # shellcheck disable=SC2086
    ${DLWB_SSH:-ssh} -i "$dir/peer_key" -p "$port" \
        -o IdentitiesOnly=yes -o UserKnownHostsFile="$dir/peer_known_hosts" \
        -o GlobalKnownHostsFile=/dev/null -o StrictHostKeyChecking=yes \
        -o BatchMode=yes -o ConnectTimeout=5 \
        -o ServerAliveInterval=5 -o ServerAliveCountMax=2 \
        "$user@$host" "sync $nonce $*" >/dev/null || echo "$name: not reached" >&2
}

n=0 lists=
for peer; do
    at=$((n % fan))
    eval "rest$at=\"\${rest$at-} $peer\""
    n=$((n + 1))
done
at=0
while [ "$at" -lt "$n" ] && [ "$at" -lt "$fan" ]; do
    mkfifo "$pipes/$at" || exit 74
    eval "set -- \$rest$at"
    first=$1
    shift
    pass "$first" "$pipes/$at" "$@" &
    lists="$lists $pipes/$at"
    at=$((at + 1))
done
# shellcheck disable=SC2086
tee $lists 2>/dev/null
wait
