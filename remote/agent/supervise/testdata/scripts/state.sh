#!/bin/sh
# state RUN_ID: one look at a run on this node.
# state RUN_ID members: only the number of its live processes.
#
# Called by dlwb (RunState, Uninstall). Changes nothing, leaves nothing. Prints:
#   state running|ended|unknown|absent [WHY]
#   now UNIX_SECONDS[+UPTIME]  the uptime in hundredths of a second
#   full UNIX UPTIME LOG WHY   when output of the run could not be written
#   free KIB              of the disk with the run directory
#   exit|rank-N.exit CODE SIGNAL START END
#   size BYTES FILE FIRST of each log: all that was ever written to it, and the
#                         first byte that is still there
#   status BYTES          and then the status file itself, to the end
# shellcheck source=common.sh
. "${0%/*}/common"
paths "$1"
if [ "${2-}" = members ]; then
    members | grep -c .
    exit 0
fi
if [ ! -d "$run" ]; then
    echo "state absent"
    exit 0
fi
# Alive is looked at before the record: a run that ends in between is seen as
# ended, never as lost.
alive=
supervisor && alive=1
if [ -f "$run/exit" ]; then
    echo "state ended"
elif [ -n "$alive" ]; then
    echo "state running"
elif [ ! -d "$run/lock" ]; then
    echo "state absent it was prepared, but never launched"
elif [ -n "$sup_boot" ] && [ "$sup_boot" != - ] && ! same_boot "$sup_boot"; then
    # Nothing lives across a boot.
    echo "state unknown the machine was rebooted during the run"
    echo "rebooted"
else
    echo "state unknown supervise is gone and has left no exit record; $(members | grep -c .) processes of the run are still there"
fi
stamp
echo "now $stamp"
df -Pk "$run" | awk 'NR == 2 { print "free", $4 }'
for file in "$run"/exit "$run"/rank-*.exit; do
    { read -r line <"$file" && echo "${file##*/} $line"; } 2>/dev/null
done
if { read -r line <"$run/full"; } 2>/dev/null; then
    echo "full $line"
fi
segment=67108864
# shellcheck source=/dev/null
[ ! -r "$run/settings" ] || . "$run/settings"
# shellcheck disable=SC2012
ls -ln "$run" | awk -v segment="$segment" '
    $NF ~ /\.log(\.[0-9]+)?$/ {
        name = $NF
        number = 0
        if (match(name, /\.[0-9]+$/)) {
            number = substr(name, RSTART + 1) + 0
            name = substr(name, 1, RSTART - 1)
        }
        end = number * segment + $5
        if (!(name in size) || end > size[name]) size[name] = end
        if (!(name in first) || number * segment < first[name]) first[name] = number * segment
    }
    END { for (name in size) printf "size %.0f %s %.0f\n", size[name], name, first[name] }'
if [ -f "$run/status" ]; then
    size=$(wc -c <"$run/status")
    echo "status $((size))"
    head -c "$size" "$run/status"
fi
