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
    signalled=1
    [ -z "$child" ] || [ -d "$run/stopping" ] || kill -TERM "$child" 2>/dev/null
}
trap pass_on TERM INT

stamp
start=$stamp
reserve "$record" || fatal "can't write $record.tmp: is the disk full?"
true >>"$run/rank-$RANK.log" || fatal "can't write rank-$RANK.log: is the disk full?"
capture "rank-$RANK.log" || fatal "can't make the pipe of its log: is the disk full?"
starved
before=$starved
(
    unset DLWB_ROLE
    trap - TERM INT
    exec "$@"
) </dev/null >&4 2>&4 4>&- 5<&- &
child=$!
exec 4>&-
say "rank $RANK started $child"
# The signal may have come before there was a child.
[ -z "$signalled" ] || pass_on

# A signal interrupts wait: then the program's own code is still to come. 127
# from a second wait means that the first one had already told it.
code=
while :; do
    signalled=
    wait "$child"
    now=$?
    if [ "$now" -ne 127 ] || [ -z "$code" ]; then
        code=$now
    fi
    [ -n "$signalled" ] || break
done

signal=$(signal_of "$code")
captured
[ "$code" -eq 0 ] || why_killed
record "$record" "$code" "$signal" "$start" ||
    fatal "ended with code $code, but can't write $record: is the disk full?"
say "rank $RANK ended $code $signal"
# Opened for reading too, else this would block when supervise is not there.
[ ! -p "$run/events" ] || echo "rank $RANK $code $signal" 1<>"$run/events"
exit "$code"
