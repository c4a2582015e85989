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

# ask NAME PERIOD COMMAND…: runs a command again and again, in the background;
# the PERIOD "rate" is that of the frames. $dir/NAME holds the last answer: when
# it came, the exit code, the output.
ask() {
    (
        name=$1 period=$2 resting=
        shift 2
        # $! and no variable: a signal may come before that would be set.
        trap 'kill -KILL $! 2>/dev/null; exit 0' TERM
        trap 'kill -KILL $! 2>/dev/null' USR1
        trap '[ -z "$resting" ] || kill -KILL $! 2>/dev/null' USR2
        while [ -d "$dir" ]; do
            clock
            echo "$now" >"$dir/$name.asked"
            "$@" >"$dir/$name.new" 2>&1 &
            await $!
            clock
            { echo "$now $code" && cat "$dir/$name.new"; } >"$dir/$name.whole" &&
                mv -f "$dir/$name.whole" "$dir/$name"
            pause=$period
            [ "$period" != rate ] || { read -r pause <"$dir/rate"; } 2>/dev/null || pause=1
            sleep "$pause" &
            resting=1
            await $!
            resting=
        done
    ) </dev/null >/dev/null 2>&1 &
    loops="$loops $!"
    eval "$1_loop=$!"
}

# await PID: waits also through a signal, which ends a wait early; sets $code.
await() {
    while wait "$1"; code=$?; [ "$code" -gt 128 ] && kill -0 "$1" 2>/dev/null; do :; done
}

# unstick NAME PID: ends a question that has hung for 20 s; the next one may
# be answered.
unstick() {
    if { read -r asked <"$dir/$1.asked"; } 2>/dev/null && [ $((now - asked)) -gt 2000 ]; then
        kill -USR1 "$2" 2>/dev/null
    fi
}

# over PID: ends a sleep. It is waited for here: bash would mostly tell of it later.
over() {
    { kill -KILL "$1" && await "$1"; } 2>/dev/null
}

finish() {
    trap '' TERM HUP INT
    trap - EXIT
    # A loop that is busy is waited for, lest it writes into what is removed.
    # One was once seen to miss its TERM (dash): it gets another, then KILL. The
    # sleep of rest gets that at once: what has just been forked has our traps.
    case " $loops " in *" $! "*) pausing= ;; esac
    if [ -n "$pausing" ]; then over $!; else kill -TERM $! 2>/dev/null; fi
    tries=0 end=TERM
    while [ -n "$loops" ] && [ "$tries" -lt 15 ]; do
        # shellcheck disable=SC2086
        kill -$end $loops 2>/dev/null
        nap
        living=
        for l in $loops; do
            if kill -0 "$l" 2>/dev/null; then living="$living $l"; fi
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

# rest: sleeps until the next frame is due, or another rate is asked for. What
# is late is not made up for.
rest() {
    due=$((due + every * 100))
    clock
    pause=$((due - now))
    if [ "$pause" -le 0 ]; then
        due=$((now + every * 100)) pause=$((every * 100))
    fi
    if [ -n "$whole" ]; then
        pause=$(((pause + 99) / 100))
    else
        part=$((pause % 100))
        [ "$part" -ge 10 ] || part=0$part
        pause=$((pause / 100)).$part
    fi
    pausing=1
    sleep "$pause" &
    sleeper=$!
    [ -z "$woken" ] || over "$sleeper"
    wait "$sleeper" 2>/dev/null
    pausing='' sleeper=''
    [ -n "$woken" ] || return 0
    [ -z "$smi" ] || kill -USR2 "$smi_loop" 2>/dev/null
    clock
    due=$now
}

trap finish EXIT
trap 'exit 0' TERM HUP INT
# Whenever it comes, also before anybody waits, the rest is over. By KILL: what has
# just been forked still has our traps, and bash would carry out "finish" there.
woken='' sleeper='' pausing=''
trap 'woken=1; [ -z "$sleeper" ] || over "$sleeper"' USR1
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
        echo "$rate" >"$dir/rate.new" && mv -f "$dir/rate.new" "$dir/rate" && kill -USR1 $$
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
smi_loop='' disk_loop=''
[ -z "$smi" ] || ask smi rate "$smi" \
    --query-gpu=index,name,utilization.gpu,memory.used,memory.total,temperature.gpu,power.draw,power.limit \
    --format=csv,noheader,nounits
ask disk 10 df -Pk "$HOME"

clock
begun=$now due=$now
while :; do
    woken=
    { read -r every <"$dir/rate"; } 2>/dev/null || every=1
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
    [ -z "$smi" ] || unstick smi "$smi_loop"
    unstick disk "$disk_loop"
    rest
done
