#!/bin/sh
# telemetry [INTERFACE]: what the node is doing, one frame of text per second.
#
# Called by dlwb (Telemetry) over one long ssh session. A number on its stdin is
# how many seconds there are from a frame to the next from then on, 10 at most:
# nobody looks at night, and nvidia-smi costs something. Ends when its stdin
# does, and leaves nothing then: no process, no file. What may hang (nvidia-smi,
# df on a dead network disk) runs in loops of its own that hand over complete
# answers by rename, so the frames keep coming. A frame costs one fork.
# Lines that this system can't tell are left out.
# shellcheck source=common.sh
. "${0%/*}/common"
interface=${1-}
dir=$(mktemp -d "${TMPDIR:-/tmp}/dlwb-telemetry.XXXXXX") || exit 74
loops=

# No wait is cut short by a signal but the one that ends its shell: where sh is
# bash, who ends at that moment may be forgotten, and is then waited for for ever.
# Who is to end is ended itself, by KILL: what has just been forked has our traps.

# pace: sets $pace, the seconds from frame to frame that were asked for last.
pace() {
    { read -r pace <"$dir/rate"; } 2>/dev/null || pace=1
}

# pause NAME SECONDS PACE: sleeps so long, or until another pace than this is asked
# for. Who asks writes the pace, then ends the sleep that $dir/NAME.rest tells of;
# here the sleep is told of first, so one of the two sees the other.
pause() {
    sleep "$2" &
    echo $! >"$dir/$1.rest"
    pace
    [ "$pace" = "$3" ] || kill -KILL $! 2>/dev/null
    wait $! 2>/dev/null
    : >"$dir/$1.rest"
}

# ask NAME PERIOD COMMAND…: runs a command again and again, in the background;
# the PERIOD "pace" is that of the frames. $dir/NAME holds the last answer: when
# it came, the exit code, the output; $dir/NAME.asked when it was asked for, and
# who is to answer, until there is one.
ask() {
    (
        name=$1 period=$2
        shift 2
        # $! and no variable: a signal may come before that would be set.
        trap 'kill -KILL $! 2>/dev/null; exit 0' TERM
        while [ -d "$dir" ]; do
            clock
            "$@" >"$dir/$name.new" 2>&1 &
            echo "$now $!" >"$dir/$name.asked"
            wait $!
            code=$?
            : >"$dir/$name.asked"
            clock
            { echo "$now $code" && cat "$dir/$name.new"; } >"$dir/$name.whole" &&
                mv -f "$dir/$name.whole" "$dir/$name"
            pace
            seconds=$period
            [ "$period" != pace ] || seconds=$pace
            pause "$name" "$seconds" "$pace"
        done
    ) </dev/null >/dev/null 2>&1 &
    loops="$loops $!"
}

# unstick NAME: ends a question that has hung for 20 s; the next one may be
# answered.
unstick() {
    if { read -r asked who <"$dir/$1.asked"; } 2>/dev/null && [ $((now - asked)) -gt 2000 ]; then
        kill -KILL "$who" 2>/dev/null
    fi
}

finish() {
    trap '' TERM HUP INT
    trap - EXIT
    exec 2>/dev/null
    # A loop that is busy is waited for, lest it writes into what is removed.
    # One was once seen to miss its TERM (dash): it gets another, then KILL.
    end=TERM
    [ -z "$pausing" ] || case " $loops " in *" $! "*) ;; *) end=KILL ;; esac
    kill -$end $!
    tries=0 end=TERM
    while [ -n "$loops" ] && [ "$tries" -lt 15 ]; do
        # shellcheck disable=SC2086
        kill -$end $loops
        nap
        living=
        for l in $loops; do
            if kill -0 "$l"; then living="$living $l"; fi
        done
        loops=$living tries=$((tries + 1))
        [ "$tries" -lt 12 ] || end=KILL
    done
    rm -rf "$dir"
    exit 0
}

# line WORDS: adds a line to the frame.
line() {
    frame="$frame$*
"
}

add_cpu() {
    { read -r _ user nice system idle iowait irq softirq steal _ </proc/stat; } 2>/dev/null || return
    busy=$((user + nice + system + irq + softirq + ${steal:-0}))
    line "cores $cores"
    line "cpu $busy $((busy + idle + iowait))"
}

add_memory() {
    total='' free='' available=''
    while read -r key kib _; do
        case $key in
        MemTotal:) total=$kib ;;
        MemFree:) free=$kib ;;
        MemAvailable:)
            available=$kib
            break
            ;;
        esac
    done 2>/dev/null </proc/meminfo
    [ -z "$total" ] || line "mem $((total - ${available:-$free})) $total"
}

add_network() {
    received='' sent=0
    while IFS=' :' read -r name rx _ _ _ _ _ _ _ tx _; do
        case $name in
        Inter-\| | face) continue ;;
        "$interface") ;;
        lo) continue ;;
        *) [ -z "$interface" ] || continue ;;
        esac
        received=$((${received:-0} + rx)) sent=$((sent + tx))
    done 2>/dev/null </proc/net/dev
    [ -z "$received" ] || line "net $received $sent"
}

add_disk() {
    { read -r _ && read -r _ && read -r _ total used _; } 2>/dev/null <"$dir/disk" || return
    line "disk $used $total"
}

# add_gpus: nvidia-smi prints its errors among its answers. On failure what
# looks like an answer (it begins with the GPU's number) is still shown.
add_gpus() {
    if [ -z "$smi" ]; then
        line "smierr no GPU"
        return
    fi
    [ -f "$dir/smi" ] || {
        [ $((now - begun)) -lt 500 ] || line "smiage $(((now - begun) / 100))"
        return
    }
    error=''
    {
        read -r when failed
        while IFS= read -r text || [ -n "$text" ]; do
            case $failed:$text in
            0:* | *:[0-9]*,*) line "smi $text" ;;
            *:?*) error="$error${error:+ }$text" ;;
            esac
        done
    } <"$dir/smi"
    if [ "$failed" -ne 0 ]; then
        line "smierr ${error:-nvidia-smi ended with exit code $failed}"
    fi
    line "smiage $(((now - when) / 100))"
}

# rest: sleeps until the next frame is due, or another pace is asked for. What
# is late is not made up for.
rest() {
    due=$((due + every * 100))
    clock
    left=$((due - now))
    if [ "$left" -le 0 ]; then
        due=$((now + every * 100)) left=$((every * 100))
    fi
    if [ -n "$whole" ]; then
        left=$(((left + 99) / 100))
    else
        part=$((left % 100))
        [ "$part" -ge 10 ] || part=0$part
        left=$((left / 100)).$part
    fi
    pausing=1
    pause frame "$left" "$every"
    pausing=''
    clock
    [ "$now" -ge "$due" ] || due=$now
}

trap finish EXIT
trap 'exit 0' TERM HUP INT
pausing=''
trap '' PIPE

# The end of stdin is the end of everything.
every=1
exec 3<&0
(
    trap - TERM HUP INT EXIT
    while read -r rate <&3; do
        case $rate in
        [1-9] | 10) ;;
        *) continue ;;
        esac
        echo "$rate" >"$dir/rate.new" && mv -f "$dir/rate.new" "$dir/rate"
        for rest in "$dir"/*.rest; do
            { read -r who <"$rest" && kill -KILL "$who"; } 2>/dev/null
        done
    done
    kill -TERM $$
) >/dev/null 2>&1 &
loops=$!
exec 3<&- </dev/null

cores=0
while read -r key _; do
    case $key in cpu[0-9]*) cores=$((cores + 1)) ;; esac
done 2>/dev/null </proc/stat
whole=
sleep 0.01 2>/dev/null || whole=1
smi=$(command -v nvidia-smi)
[ -z "$smi" ] || ask smi pace "$smi" \
    --query-gpu=index,name,utilization.gpu,memory.used,memory.total,temperature.gpu,power.draw,power.limit \
    --format=csv,noheader,nounits
ask disk 10 df -Pk "$HOME"

clock
begun=$now due=$now
while :; do
    pace
    every=$pace
    clock
    frame=
    line "frame $((now / 100)).$((now / 10 % 10))$((now % 10))"
    [ "$every" -eq 1 ] || line "every $every"
    add_cpu
    add_memory
    add_network
    add_disk
    add_gpus
    [ -z "${DLWB_SIMULATED_GPUS-}" ] || line sim
    printf '%send\n' "$frame" 2>/dev/null || exit 0
    [ -z "$smi" ] || unstick smi
    unstick disk
    rest
done
