#!/bin/sh
# rank RUN_DIR PROGRAM [ARGUMENT…]: one rank of a run.
#
# Called by supervise (engine "plain") or by a launcher such as torchrun, with
# $RANK set. Runs the program with its raw output appended to rank-$RANK.log
# (by log), passes TERM on to it, and exits with its code (128+n after signal
# n). Leaves rank-$RANK.exit, and in status when it started and ended, and
# whether the kernel took its memory for a reason to end it.

# Stop must be able to tell this wrapper, which writes the record of the end,
# from the program. Only a new exec shows in /proc/PID/environ.
if [ "${DLWB_ROLE-}" != rank ]; then
    DLWB_ROLE=rank
    export DLWB_ROLE
    exec sh "$0" "$@"
fi
# shellcheck source=common.sh
. "${0%/*}/common"

run=${DLWB_RUN_DIR:-$1}
shift
case ${RANK-} in
'' | *[!0-9]*)
    echo "dlwb rank: RANK is \"${RANK-}\", which is no number: a launcher must set it" >&2
    exit 64
    ;;
esac
record=$run/rank-$RANK.exit

fatal() {
    echo "dlwb rank $RANK: $*" >&2
    [ ! -p "$run/events" ] || echo "rank $RANK 74 -" 1<>"$run/events"
    exit 74
}

# starved: sets $starved to how many processes of our own memory group the
# kernel has ended for lack of memory (memory.events(5) of cgroup v2; it counts
# those that the whole machine's lack has cost as well); "-" where nobody counts.
starved() {
    starved=-
    group=$(sed -n 's/^0:://p' /proc/self/cgroup 2>/dev/null)
    while read -r key count; do
        [ "$key" != oom_kill ] || starved=$count
    done 2>/dev/null <"/sys/fs/cgroup$group/memory.events"
}

# why_killed: says in status when the kernel has ended a process of this rank
# for lack of memory, by its own word.
why_killed() {
    starved
    if [ "$before" != - ] && [ "$starved" != - ] && [ "$starved" -gt "$before" ]; then
        say "rank $RANK starved $((starved - before))"
    elif [ "$signal" = KILL ] && dmesg 2>/dev/null | tail -n 2000 | grep -q "Killed process $child "; then
        say "rank $RANK starved 1"
    fi
}

# The program starts as a background job, which makes it ignore INT: it gets
# TERM instead. When a stop is under way the program has got its TERM already.
child=
signalled=
pass_on() {
    signalled=1 caught=1
    [ -z "$child" ] || [ -d "$run/stopping" ] || kill -TERM "$child" 2>/dev/null
}
trap pass_on TERM INT

# hear: sets $heard to the next line of the minder; false when it has gone.
hear() {
    while
        caught=''
        ! read -r heard <&7
    do
        [ -n "$caught" ] || return
    done
}

stamp
start=$stamp
reserve "$record" || fatal "can't write $record.tmp: is the disk full?"
true >>"$run/rank-$RANK.log" || fatal "can't write rank-$RANK.log: is the disk full?"
capture "rank-$RANK.log" || fatal "can't make the pipe of its log: is the disk full?"
mkfifo "$record.pipe" || fatal "can't make a pipe: is the disk full?"
exec 6<>"$record.pipe"
exec 7<"$record.pipe"
rm -f "$record.pipe"
starved
before=$starved
# The minder, whom no signal reaches, waits for the program. A launcher may end
# wrapper and program at once, and the wait of a shell that gets a signal while
# its child ends tells a wrong code (dash), none, or never ends (bash).
(
    trap '' TERM INT
    exec 7<&-
    (
        unset DLWB_ROLE
        trap - TERM INT
        echo ready >&6
        exec "$@" 6>&-
    ) </dev/null >&4 2>&4 4>&- 5<&- &
    exec 4>&- 5<&-
    echo $! >&6
    wait $!
    echo $? >&6
) &
exec 4>&- 6>&-
# Its number and "ready", whichever comes first: before both, a TERM would be lost.
{ hear && first=$heard && hear; } || fatal "its program can't be started"
child=${first#ready}${heard#ready}
say "rank $RANK started $child"
# The signal may have come before there was a child.
[ -z "$signalled" ] || pass_on

# No code is told where the minder was killed; what it left running is swept up.
code=137
! hear || code=$heard

signal=$(signal_of "$code")
captured
[ "$code" -eq 0 ] || why_killed
record "$record" "$code" "$signal" "$start" ||
    fatal "ended with code $code, but can't write $record: is the disk full?"
say "rank $RANK ended $code $signal"
# Opened for reading too, else this would block when supervise is not there.
[ ! -p "$run/events" ] || echo "rank $RANK $code $signal" 1<>"$run/events"
exit "$code"
