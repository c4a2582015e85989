#!/bin/sh
# supervise RUN_DIR: runs the processes of one run on this node.
#
# Called by dlwb's Launch once the run directory holds settings, env, procs,
# proc.NAME for each process, and peers. Goes on in a session of its own, so
# that a lost connection ends nothing, and returns when that is up; called
# again for the same run it does nothing. Leaves in the run directory: status,
# pid, the logs, and at the end the record "exit". Nothing of the run is alive
# then. When a process fails, the others here and on the peers are stopped,
# also when nobody is connected.
# shellcheck source=common.sh
. "${0%/*}/common"
bin=${0%/*}
paths "${1##*/}"

fatal() {
    echo "dlwb supervise: run $id: $*" >&2
    exit 74
}

# up: waits until the supervising process has written its pid.
up() {
    tries=0
    while [ ! -f "$run/pid" ]; do
        tries=$((tries + 1))
        [ "$tries" -lt 100 ] || return 1
        nap
    done
}

# detach: starts this script again where no lost connection reaches it.
detach() {
    set -- sh "$0" "$run" --detached
    if command -v setsid >/dev/null; then
        set -- setsid "$@"
    elif command -v perl >/dev/null; then
        set -- perl -e 'use POSIX; setsid(); exec @ARGV' "$@"
    else
        set -- nohup "$@"
    fi
    # A cgroup of its own holds also what leaves the session and clears its
    # environment. Two nodes may share a machine: the name says which.
    if [ "$(id -u)" = 0 ] && [ -d /run/systemd/system ] && command -v systemd-run >/dev/null; then
        unit=dlwb-$id-$(printf %s "$run" | cksum | cut -d ' ' -f 1)
        systemd-run --scope --quiet --collect --unit="$unit" true 2>/dev/null &&
            set -- systemd-run --scope --quiet --collect --unit="$unit" "$@"
    fi
    DLWB_RUN=$id DLWB_RUN_DIR=$run DLWB_ROLE=supervise "$@" </dev/null >>"$run/supervise.log" 2>&1 &
}

if [ "${2-}" != --detached ]; then
    if mkdir "$run/lock" 2>/dev/null; then
        detach
        if ! up; then
            cat "$run/supervise.log" >&2
            rmdir "$run/lock"
            fatal "did not come up"
        fi
    else
        [ -d "$run/lock" ] || fatal "can't make $run/lock: is the disk full?"
        up || fatal "was launched before, and that did not come up: launch it under another id"
    fi
    exit 0
fi

# From here on this is the process that supervises.

# enclose: a cgroup of its own where root has no systemd to ask for one. Any
# hierarchy will do: it only keeps together what the run has started.
enclose() {
    [ "$(id -u)" = 0 ] && [ "${DLWB_CGROUP-}" != no ] || return 0
    for top in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/pids; do
        [ -f "$top/cgroup.procs" ] || continue
        outside=$(sed -n "s/^0::\\///p" /proc/self/cgroup)
        [ "$top" != /sys/fs/cgroup/pids ] || outside=$(sed -n 's/^[0-9]*:pids:\///p' /proc/self/cgroup)
        outside=$top${outside:+/}$outside
        group=$outside/dlwb-$id-$(printf %s "$run" | cksum | cut -d ' ' -f 1)
        if mkdir "$group" && echo $$ >"$group/cgroup.procs"; then
            echo "$group" >"$run/cgroup"
            return 0
        fi
        rmdir "$group"
    done
} 2>/dev/null

# disclose: leaves that cgroup, and removes it.
disclose() {
    read -r group <"$run/cgroup" && [ "${group#/sys/}" != "$group" ] || return 0
    echo $$ >"${group%/*}/cgroup.procs"
    rmdir "$group"
} 2>/dev/null

stamp
start=$stamp
if ! reserve "$run/full" || ! reserve "$run/exit"; then
    fatal "can't write $run/exit.tmp: is the disk full?"
fi
mkfifo "$run/events" || fatal "can't make $run/events"
exec 3<>"$run/events"
node='' grace_ms='' fail_grace=''
[ -r "$run/settings" ] || fatal "can't read $run/settings"
# shellcheck source=/dev/null
. "$run/settings"
grep -o '/.*dlwb-.*\.scope' /proc/self/cgroup 2>/dev/null | head -n 1 >"$run/cgroup"
[ -s "$run/cgroup" ] || enclose
say "started $$" || fatal "can't write $run/status: is the disk full?"
boot
born $$
if ! echo "$$ $born $boot" >"$run/pid.tmp" || ! mv "$run/pid.tmp" "$run/pid"; then
    fatal "can't write $run/pid: is the disk full?"
fi

# Whoever ends us by TERM means the run.
trap 'echo term >&3' TERM INT
trap '' HUP

# run_proc NAME LOG: starts a process and notes its end as an event. A rank
# sends its output to the log itself; here is only what its wrapper says.
run_proc() {
    (
        trap '' TERM INT
        logger=''
        case $2 in
        rank-*) exec 4>>"$run/$2" ;;
        *) capture "$2" || exec 4>>"$run/$2" ;;
        esac
        (
            trap - TERM INT
            unset DLWB_ROLE
            exec sh "$run/proc.$1" </dev/null >&4 2>&4 3>&- 4>&- 5<&-
        )
        code=$?
        [ -z "$logger" ] || captured
        echo "proc $1 $code" >&3
        exit "$code"
    ) &
    watchers="$watchers $1:$!"
}

# ended NAME: takes the process from $watchers; false when it was not there.
ended() {
    rest=
    for w in $watchers; do
        [ "${w%:*}" = "$1" ] || rest="$rest $w"
    done
    [ "$rest" != "$watchers" ] && watchers=$rest
}

# lost: takes note of processes whose end made no event: somebody killed the
# shell that waited for them. An event may be on its way, so it is the second
# look that counts.
lost() {
    for w in $watchers; do
        kill -0 "${w#*:}" 2>/dev/null && continue
        case " $missed " in
        *" $w "*)
            wait "${w#*:}"
            code=$?
            proc_ended "${w%:*}" "$code"
            ;;
        *) missed="$missed $w" ;;
        esac
    done
}

# proc_ended NAME CODE
proc_ended() {
    ended "$1" || return
    [ "$2" -eq 0 ] || failure "$(echo "$1" | sed 's/^rank-/rank /')" "$2" "$(signal_of "$2")"
}

# failure WHO CODE SIGNAL: the first one decides what becomes of the run. The
# others get a moment to print what they know, and are stopped then. What ends
# because of a stop has not failed.
failure() {
    [ -z "$failed" ] && [ ! -d "$run/stopping" ] || return 0
    failed=$2 signal=$3
    why="$1 on $node $(outcome "$2" "$3")"
    patience=1
    after "$fail_grace" patience
}

# after SECONDS EVENT: makes the event then, unless ended by TERM before.
after() {
    (
        trap 'kill $! 2>/dev/null; exit 0' TERM
        sleep "$1" 3>&- &
        wait
        echo "$2" >&3
    ) &
    timers="$timers $!"
}

# stop_here WHY: in the background, as what ends is to be noted meanwhile.
stop_here() {
    (unset DLWB_RUN_DIR; exec sh "$bin/stop" --own "$id" "$grace_ms" "$1" >&2 3>&-) &
}

# stop_peers: tells every peer, all at once, and gives up on those that do not
# answer in time.
stop_peers() {
    [ -s "$run/peers" ] || return 0
    [ -r "$HOME/.dlwb/peer_key" ] || { echo "no peer_key: the peers can't be told" >&2; return 0; }
    while read -r name host port user; do
        tell "$name" "$port" "$user@$host" &
        tellers="$tellers $!"
    done <"$run/peers"
}

# tell NAME PORT USER@HOST
tell() {
    # shellcheck disable=SC2086
    ${DLWB_SSH:-ssh} -i "$HOME/.dlwb/peer_key" -p "$2" \
        -o IdentitiesOnly=yes -o UserKnownHostsFile="$HOME/.dlwb/peer_known_hosts" \
        -o GlobalKnownHostsFile=/dev/null -o StrictHostKeyChecking=yes \
        -o BatchMode=yes -o ConnectTimeout=5 \
        -o ServerAliveInterval=5 -o ServerAliveCountMax=2 "$3" "stop $id $why" </dev/null >&2 3>&- &
    ssh=$!
    trap 'kill -KILL $ssh 2>/dev/null' TERM
    if wait $ssh; then
        say "peer $1 told"
    else
        say "peer $1 not reached"
    fi
}

# result: sets $code and $signal for the record of the run.
result() {
    if [ -n "$failed" ]; then
        code=$failed
    elif [ -n "$stopped" ]; then
        code=143 signal=TERM
    else
        code=0 signal=-
    fi
}

# sweep: ends whatever the processes have left behind, and writes the records
# of ranks whose wrapper was killed before it could.
sweep() {
    (unset DLWB_RUN_DIR; exec sh "$bin/stop" --own "$id" "$1" >&2 3>&-)
    for left in "$run"/rank-*.exit.tmp; do
        [ -f "$left" ] || continue
        record "${left%.tmp}" 137 KILL "$start"
        left=${left##*/rank-}
        say "rank ${left%%.*} ended 137 KILL"
    done
}

# wait_for_tellers: for as long as a peer may need to answer.
wait_for_tellers() {
    clock
    deadline=$((now + 1500))
    for t in $tellers; do
        while kill -0 "$t" 2>/dev/null && clock && [ "$now" -lt "$deadline" ]; do nap; done
        kill -TERM "$t" 2>/dev/null
        wait "$t"
    done
}

failed='' signal=- why='' stopped='' patience='' watchers='' missed='' tellers='' timers=''
while read -r name log _; do
    run_proc "$name" "$log"
done <"$run/procs"
after 5 tick

# With peers, the moment of patience is theirs too.
while [ -n "$watchers" ] || { [ -n "$patience" ] && [ -s "$run/peers" ]; }; do
    # A signal interrupts read: then there is no event.
    read -r event a b c <&3 || continue
    case $event in
    rank) [ "$b" -eq 0 ] || failure "rank $a" "$b" "$c" ;;
    proc) proc_ended "$a" "$b" ;;
    tick)
        lost
        after 5 tick
        ;;
    term) [ -d "$run/stopping" ] || stop_here "supervise got SIGTERM" ;;
    patience)
        patience=
        [ -z "$watchers" ] || stop_here "$why"
        stop_peers
        ;;
    esac
done
[ ! -d "$run/stopping" ] || stopped=1
# shellcheck disable=SC2086
kill $timers 2>/dev/null
sweep 2000
result
wait_for_room=0
until record "$run/exit" "$code" "$signal" "$start"; do
    # Nobody may take a run for ended well that is not recorded. Whoever asks
    # now sees a run that has not ended; after a minute, one with no record.
    wait_for_room=$((wait_for_room + 1))
    [ "$wait_for_room" -lt 60 ] || fatal "ended with code $code, but can't write $run/exit: is the disk full?"
    sleep 1
done
say "ended $code"
rm -f "$run/events"
wait_for_tellers
disclose
