#!/bin/sh
# Tells what a training writes into files of metrics: looks for them below the
# given directories and prints what is new in them, in frames. A dlwb that
# watches a run starts it over ssh as one long-lived command (follow), or to
# read the rest once (once). It leaves nothing, and ends when nobody reads.
#
#   files follow|once fresh|known SIGN MARK [INODE:OFFSET:SUM …] -- DIR…
#
# SIGN begins each frame: a word that no file can know. MARK is a file as old as
# the run: what was written before it is not the run's. Frames:
#
#   SIGN base INODE SIZE END      how long a file was before the run, and its end
#   SIGN file INODE OFFSET LENGTH SIZE SUM PATH, then LENGTH bytes (fewer: the
#                                 file became shorter meanwhile)
#   SIGN pass MORE                once through; MORE is 1 when more is to come
#   SIGN full                     as much was read as is allowed: the end
#
# A file is known by its inode, so one that was renamed into place is another.
# One that is shorter than before, or a table with another header (SUM), is read
# from its beginning again.
how=$1 fresh=$2 sign=$3 mark=$4
shift 4
most=64                # files
piece=1048576          # bytes of a file in one pass
longest=268435456      # bytes of a file
total=1073741824       # bytes of all
tick=2                 # seconds
sent=0
nl='
'
blank=' 	'
set -f
LC_ALL=C
export LC_ALL
while [ "$1" != -- ]; do
    state=${1#*:}
    eval "at_${1%%:*}=${state%%:*} sum_${1%%:*}=${state#*:}"
    shift
done
shift

# candidates WHEN DIR… prints the files that may hold metrics; WHEN is -newer or
# "! -newer".
candidates() {
    when=$1 IFS=$blank$nl
    shift
    # shellcheck disable=SC2086 # WHEN is words of find
    find "$@" -maxdepth 8 \( -name .git -o -name node_modules -o -name site-packages -o -name __pycache__ \
        -o -name .venv -o -name venv -o -name wandb -o -name .cache \) -prune -o -type f $when "$mark" \
        \( -name '*tfevents*' -o -name metrics.csv -o -name results.csv -o -name summary.csv -o -name progress.csv \
        -o -name '*monitor.csv' -o -name log.csv -o -name '*_log.csv' -o -name history.csv -o -name trainer_state.json \
        -o -name metrics.json -o -name scalars.json -o -name result.json -o -name '*.log.json' -o -name 'metrics*.jsonl' \
        -o -name '*log*.jsonl' -o -name 'history*.jsonl' -o -name 'progress*.jsonl' -o -name 'stats*.jsonl' -o -name log.txt \) \
        -print 2>/dev/null | sort
}

# look FILE sets inode and size.
look() {
    # shellcheck disable=SC2046 # the words are wanted
    set -- $(ls -lnid -- "$1" 2>/dev/null)
    inode=${1:-} size=${6:-}
    case $inode:$size in :* | *: | *[!0-9:]*) return 1 ;; esac
}

# bases tells how long the files are that are older than the run.
bases() {
    IFS=$nl
    for f in $(candidates '! -newer' "$@" | head -n 1000); do
        IFS=$blank$nl
        case $f in *tfevents* | */trainer_state.json) continue ;; esac
        look "$f" || continue
        printf '\n%s base %s %s %s\n' "$sign" "$inode" "$size" \
            "$(tail -c 64 -- "$f" | od -An -v -tx1 | tr -d " $nl")" || exit
    done
    IFS=$blank$nl
}

# show FILE prints what is new in a file.
show() {
    f=$1
    look "$f" || return
    have=0 was=0 sum=0
    eval "have=\${at_$inode:-0} was=\${sum_$inode:-0}"
    case $f in
    */trainer_state.json) # written as a whole
        [ "$size" -ne "$have" ] && [ "$size" -le $((32 * piece)) ] || return
        have=0 length=$size
        ;;
    *)
        case $f in
        *.csv)
            sum=$(head -n 1 -- "$f" | cksum)
            sum=${sum%% *}
            ;;
        esac
        if [ "$size" -lt "$have" ] || [ "$sum" != "$was" ] && [ "$was" != 0 ]; then have=0; fi
        length=$((size - have))
        [ "$length" -gt 0 ] && [ "$have" -lt "$longest" ] || return
        if [ "$length" -gt "$piece" ]; then length=$piece more=1; fi
        ;;
    esac
    sent=$((sent + length))
    if [ "$sent" -gt "$total" ]; then
        printf '\n%s full\n' "$sign"
        exit
    fi
    printf '\n%s file %s %s %s %s %s %s\n' "$sign" "$inode" "$have" "$length" "$size" "$sum" "$f" || exit
    tail -c +$((have + 1)) -- "$f" 2>/dev/null | head -c "$length"
    eval "at_$inode=$((have + length)) sum_$inode=$sum"
}

if [ "$fresh" = fresh ]; then bases "$@"; fi
next=0 list=
while :; do
    now=$(date +%s) more=0
    if [ "$now" -ge "$next" ]; then
        list=$(candidates -newer "$@" | head -n "$most")
        took=$(($(date +%s) - now))
        next=$((now + 4 + 20 * took)) # a tree that is slow to search is searched seldom
    fi
    IFS=$nl
    for f in $list; do
        IFS=$blank$nl
        show "$f"
    done
    IFS=$blank$nl
    printf '\n%s pass %s\n' "$sign" "$more" || exit
    if [ "$more" = 0 ]; then
        if [ "$how" = once ]; then exit 0; fi
        sleep "$tick"
    fi
done
