#!/bin/sh
# shutdown [-h|-P] [now|+MINUTES] [WORDS…], shutdown -c, poweroff, halt: tells
# the rig that the guest powers itself off.
# shellcheck source=common.sh
. "${0%/*}/common"
when=now
while [ $# -gt 0 ]; do
    case $1 in
    -c)
        { read -r waiting <"$guest/run/shutdown" && kill "-$waiting"; } 2>/dev/null
        rm -f "$guest/run/shutdown"
        exit 0
        ;;
    -r | --reboot) echo "${0##*/} of the rig: a guest can't reboot" >&2; exit 1 ;;
    -*) ;;
    now | +[0-9]*) when=$1 ;;
    esac
    shift
done
if [ "$("${0%/*}/id" -u)" != 0 ]; then
    echo "${0##*/}: only root may do that" >&2
    exit 1
fi
case ${when#+} in
now | 0) echo "$instance poweroff" >"$power" ;;
*)
    later="sleep \$((60 * ${when#+})); echo $instance poweroff >$power"
    setsid /bin/sh -c "$later" </dev/null >/dev/null 2>&1 &
    echo $! >"$guest/run/shutdown"
    ;;
esac
