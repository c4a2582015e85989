#!/bin/sh
# log RUN_DIR NAME [again]: writes what comes on its stdin to the log NAME, in
# numbered segments, and drops the oldest of them when there are too many.
#
# Called by supervise and rank (capture, in common), one for each log, and
# again when somebody killed it; ends with its input. Byte N of all that was
# ever written lies in segment N / $segment: NAME is number 0, NAME.1 the next,
# and all but the newest are whole. Leaves the segments, and "full" when the
# disk had no room.
#
# The training never waits for a disk and gets no SIGPIPE: what can't be
# written is read all the same, counted and told in the log, and whoever called
# holds the pipe open.
# shellcheck source=common.sh
. "${0%/*}/common"
run=$1 name=$2 LC_ALL=C
export LC_ALL
trap '' HUP INT TERM PIPE

# holder: whether another process writes this log; sets $old.
holder() {
    read -r old old_born <"$run/$name.pid" && [ "$old" != $$ ] && born "$old" && [ "$born" = "$old_born" ]
} 2>/dev/null

# Two writers would break the length of a segment. Where a launcher has started
# a rank anew, and what the earlier one left behind still holds its pipe, the
# new one takes over.
if holder; then
    [ "${3-}" != again ] || exit 0
    kill -KILL -- "-$old" 2>/dev/null || kill -KILL "$old" 2>/dev/null
fi
born $$
{ echo "$$ $born" >"$run/$name.pid"; } 2>/dev/null

# measure: sets $file and $size of the present segment.
measure() {
    file=$run/$name
    [ "$number" -eq 0 ] || file=$file.$number
    size=$(wc -c 2>/dev/null <"$file")
    size=$((${size:-0}))
} 2>/dev/null

# turn: begins the next segment and drops the one that is too many.
turn() {
    number=$((number + 1))
    { true >>"$run/$name.$number"; } 2>/dev/null
    old=$((number - keep))
    if [ "$old" -gt 0 ]; then
        rm -f "$run/$name.$old"
    elif [ "$old" -eq 0 ]; then
        rm -f "$run/$name"
    fi
    measure
}

# note WORDS: the record that output was lost, in the room taken for it.
note() {
    clock
    [ -f "$run/full" ] || {
        printf '%s %s %s\n' "$(date +%s)" "$now" "$name $1" 1<>"$run/full.tmp" && mv -f "$run/full.tmp" "$run/full"
    }
} 2>/dev/null

# roomy: whether there is a mebibyte again.
roomy() {
    available=$(df -Pk "$run" 2>/dev/null | awk 'NR == 2 { print $4 }')
    [ "${available:-0}" -ge 1024 ]
}

# full WORDS: reads on without writing until there is room, and says in the
# log what is missing there.
full() {
    note "$1"
    lost=0
    while :; do
        piece=$(dd bs=65536 count=1 2>/dev/null | wc -c)
        lost=$((lost + piece))
        if [ $((piece)) -eq 0 ] || roomy; then break; fi
    done
    [ $((segment - size)) -gt 400 ] || turn
    printf '\n[dlwb: %s; %s to %s bytes of output are missing here]\n' \
        "${1:-the log could not be written}" "$lost" $((lost + 65536)) 2>/dev/null >>"$file"
    [ $((piece)) -gt 0 ] || finish
}

finish() {
    rm -f "$run/$name.pid"
    exit 0
}

segment=67108864 keep=64
# shellcheck source=/dev/null
[ ! -r "$run/settings" ] || . "$run/settings"
number=0
for file in "$run/$name".[0-9]*; do
    case ${file##*.} in
    *[!0-9]*) ;;
    *) [ "${file##*.}" -le "$number" ] || number=${file##*.} ;;
    esac
done
while :; do
    measure
    room=$((segment - size))
    if [ "$room" -le 0 ]; then
        turn
        continue
    elif [ "$room" -ge 65536 ]; then
        bs=65536 count=$((room / 65536))
    else
        bs=$room count=1
    fi
    # dd writes what a read has given at once, however little it is.
    said=$(dd bs="$bs" count="$count" 2>&1 >>"$file")
    code=$?
    case $code:$said in
    0:*0+0\ records\ in*) finish ;;
    0:*) ;;
    153:*) full "the log reached the limit for a file's size" ;;
    *)
        [ "$code" -le 128 ] || continue
        case $said in
        *"No space left"* | *uota*) full "the disk was full" ;;
        *) full "the log could not be written" ;;
        esac
        ;;
    esac
done
