#!/bin/sh
# peer: what another node of the cluster may do here: stop a run, and pass on
# files that dlwb itself has announced here.
#
# Called by sshd as the forced command of the cluster's node-to-node key; what
# the other node asked for is in SSH_ORIGINAL_COMMAND. It never runs anything
# that the other node sends.
#
# "stop RUN_ID WHY…": the stop goes on by itself, with the run's own grace, so
# that a peer need not wait for it. Leaves what stop leaves.
#
# "sync NONCE PEER…": fills the pipe ~/.dlwb/in/NONCE/stream, which a receiving
# command of dlwb has made and reads, and relays to more peers. That command
# uses what came only when its SHA-256 is the one that dlwb tells it over its
# own connection.
# shellcheck source=common.sh
. "${0%/*}/common"
bin=${0%/*}
set -f
refuse() {
    echo "dlwb peer: this key can only stop a run or pass on files" >&2
    exit 64
}

pass_on() {
    for word; do
        case $word in '' | .* | -* | *[!A-Za-z0-9._-]*) refuse ;; esac
    done
    in=$HOME/.dlwb/in/$1
    clock
    deadline=$((now + 700))
    until [ -p "$in/stream" ]; do
        clock
        if [ "$now" -ge "$deadline" ]; then
            echo "dlwb peer: nobody waits for $1 here" >&2
            exit 66
        fi
        nap
    done
    mkdir "$in/came" 2>/dev/null || refuse # one sender each
    if [ $# -eq 1 ]; then
        exec cat >"$in/stream"
    fi
    exec sh "$bin/relay" "$@" >"$in/stream"
}

# shellcheck disable=SC2086
set -- $SSH_ORIGINAL_COMMAND
[ $# -ge 2 ] || refuse
case $1 in
sync)
    shift
    pass_on "$@"
    ;;
stop) ;;
*) refuse ;;
esac
paths "$2"
if [ ! -d "$run" ]; then
    echo "dlwb peer: no run $id here" >&2
    exit 66
fi
shift 2
setsid=
command -v setsid >/dev/null && setsid=setsid
$setsid sh "$bin/stop" "$id" - "$@" </dev/null >/dev/null 2>&1 &
echo "stopping $id"
