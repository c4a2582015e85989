#!/bin/sh
# watch: prints the state of this machine's lease, that it is over, and the
# notice that EC2 takes a spot machine back, every 10 seconds and when one of
# them changes. While it runs, a machine whose lease is over waits for a while
# until ~/.dlwb/fetched holds the id of its end: see lease.
#
# Called by dlwb over ssh, by any user, for as long as somebody reads. Leaves
# nothing. A line is "lease up=S bound=B left=S idle=S live=0|1", "leaving id=N
# bound=B" or "notice action=A at=UNIX_SECONDS left=S".
dir=/var/lib/dlwb
age=0 shown=
while :; do
    line='' notice='' leaving=''
    { read -r line <"$dir/lease.state"; } 2>/dev/null
    { read -r notice <"$dir/notice"; } 2>/dev/null
    { read -r leaving <"$dir/leaving"; } 2>/dev/null
    if [ -z "$line" ] && [ "$age" -ge 30 ]; then
        echo "dlwb watch: this machine holds no lease" >&2
        exit 69
    fi
    if [ -n "$line" ] && { [ "$line$leaving$notice" != "$shown" ] || [ "$age" -ge 10 ]; }; then
        shown=$line$leaving$notice age=0
        echo "$line" 2>/dev/null || exit 0
        [ -z "$leaving" ] || echo "$leaving" 2>/dev/null || exit 0
        at=${notice##*at=}
        case $at in
        '' | *[!0-9]*) ;;
        *)
            left=$((at - $(date +%s)))
            [ "$left" -ge 0 ] || left=0
            echo "$notice left=$left" 2>/dev/null || exit 0
            ;;
        esac
    fi
    age=$((age + 1))
    sleep 1
done
