#!/bin/sh
# stop RUN_ID [GRACE_MS|-] [WHY…]: ends every process of a run on this node.
# stop --own RUN_ID GRACE_MS [WHY…]: the same, called by supervise itself,
#   which is spared. Without WHY it only sweeps up what a finished run has left.
#
# Called by dlwb (StopRun), by supervise, and for a peer node by peer. TERM to
# the training, a grace, then KILL, again and again until nothing is left or a
# bound is reached. May be called at any time, also twice at once. Leaves the
# line "stopping WHY" in status and the marker directory "stopping", and writes
# the record "exit" where supervise can't any more. Prints "left N": the number
# of processes that are still there.
# shellcheck source=common.sh
. "${0%/*}/common"
own=
if [ "$1" = --own ]; then
    own=1
    shift
fi
paths "$1"
grace=${2:--}
[ $# -lt 2 ] || shift
shift
why=$*
# Who asked may go away; what was begun is finished.
trap '' HUP INT TERM PIPE

if [ "$grace" = - ]; then
    grace_ms=10000
    # shellcheck source=/dev/null
    [ ! -r "$run/settings" ] || . "$run/settings"
    grace=$grace_ms
fi
case $grace in '' | *[!0-9]*) echo "dlwb stop: the grace \"$grace\" is not in milliseconds" >&2; exit 64 ;; esac

# look: sets $work (what the training started), $wrappers (our rank and log scripts)
# and $keepers (supervise and what it started for itself). Collects in $seen.
look() {
    work='' wrappers='' keepers=''
    # shellcheck disable=SC2046
    set -- $(members)
    while [ $# -gt 1 ]; do
        case $2 in
        -) work="$work $1" ;;
        rank | log) wrappers="$wrappers $1" ;;
        *) keepers="$keepers $1" ;;
        esac
        shift 2
    done
    [ -z "$own" ] || keepers=
    for p in $work; do
        case " $seen " in *" $p "*) ;; *) seen="$seen $p" ;; esac
    done
}

# send SIGNAL PIDS…
send() {
    signal=$1
    shift
    [ $# -eq 0 ] || kill -"$signal" "$@" 2>/dev/null
}

# begin: TERM, once per run: a second one would cut short what the first made
# a program do, such as saving a checkpoint.
begin() {
    if [ -z "$own" ] || [ -n "$why" ]; then
        if [ -d "$run" ] && [ ! -f "$run/exit" ]; then
            if mkdir "$run/stopping" 2>/dev/null; then
                say "stopping ${why:-without a reason given}"
            elif [ -d "$run/stopping" ]; then
                told=all
            fi
        fi
    fi
    term
}

# term: to what has not got it yet, also when it was started meanwhile.
term() {
    [ "$told" != all ] || return
    for p in $work; do
        case " $told " in *" $p "*) continue ;; esac
        told="$told $p"
        send TERM "$p"
    done
}

# rest_of KIND: sets $rest: work, all, or ours (those of our own processes
# that still have something to write; without supervise, none of its helpers).
rest_of() {
    case $1 in
    work) rest=$work ;;
    all) rest=$work$wrappers$keepers ;;
    ours)
        rest=$wrappers
        if supervisor; then rest=$rest$keepers; fi
        ;;
    esac
}

# until_gone MS KIND: looks until none of a kind is left; false when the time
# is over first. Work gets its TERM, and what appears after its end no mercy.
until_gone() {
    clock
    deadline=$((now + $1 / 10))
    while rest_of "$2" && [ -n "$rest" ]; do
        clock
        [ "$now" -lt "$deadline" ] || return 1
        nap
        look
        # shellcheck disable=SC2086
        if [ "$2" = work ]; then term; else send KILL $work; fi
    done
}

# kill_all KIND: KILL until nothing of it is left, for up to two seconds. What
# is born meanwhile is found by the next look.
kill_all() {
    clock
    deadline=$((now + 200))
    while rest_of "$1" && [ -n "$rest" ]; do
        # shellcheck disable=SC2086
        send KILL $rest
        clock
        [ "$now" -lt "$deadline" ] || return 1
        nap
        look
    done
}

# close_record: where supervise was killed, nobody else can say that the run
# has ended. What its ranks ended with is in their own records.
close_record() {
    [ -d "$run/lock" ] && [ ! -f "$run/exit" ] || return 0
    started=$(sed -n 's/ started .*//p' "$run/status" 2>/dev/null | head -n 1)
    if record "$run/exit" 137 KILL "${started:-0}"; then
        say "ended 137"
    else
        echo "dlwb stop: can't write $run/exit: is the disk full?" >&2
    fi
    rm -f "$run/events"
}

# free_gpus: waits a little until no process of the run holds GPU memory.
# nvidia-smi may hang, so it is asked in the background.
free_gpus() {
    [ -n "$seen" ] && command -v nvidia-smi >/dev/null || return 0
    clock
    deadline=$((now + 500))
    answer=$(mktemp "${TMPDIR:-/tmp}/dlwb-stop.XXXXXX") || return 0
    while :; do
        nvidia-smi --query-compute-apps=pid --format=csv,noheader >"$answer" 2>/dev/null &
        smi=$!
        while kill -0 $smi 2>/dev/null && clock && [ "$now" -lt "$deadline" ]; do nap; done
        clock
        if [ "$now" -ge "$deadline" ]; then
            kill -KILL $smi 2>/dev/null
            break
        fi
        holds=
        while read -r p _; do
            case " $seen " in *" ${p%,} "*) holds=1 ;; esac
        done <"$answer"
        [ -n "$holds" ] || break
        nap
    done
    rm -f "$answer"
}

seen='' told=''
look
begin
until_gone "$grace" work || kill_all work
# Our own processes end by themselves, once they have written their records.
until_gone 5000 ours
kill_all all
look
[ -n "$own" ] || [ -n "$work$wrappers$keepers" ] || close_record
free_gpus
# shellcheck disable=SC2086
set -- $work $wrappers $keepers
# A cgroup that supervise has made and can't remove any more.
if [ $# -eq 0 ] && [ -z "$own" ] && { read -r group <"$run/cgroup"; } 2>/dev/null && [ "${group#/sys/}" != "$group" ]; then
    rmdir "$group" 2>/dev/null
fi
echo "left $#"
[ $# -eq 0 ]
