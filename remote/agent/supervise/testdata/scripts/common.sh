#!/bin/sh
# common: what supervise, rank, log, stop, state and peer share. They read it with
# ".", nobody runs it. It defines functions and leaves nothing behind.
#
# How a process of a run is known: its environment holds the cookie
# DLWB_RUN_DIR=<run directory>, or it is in the session of the run's supervise,
# or in the run's cgroup, or it prints into the pipe of one of the run's logs,
# or it is a child of such a process. (DLWB_RUN=<id> is there
# for people who look with ps; it is not unique where two nodes share a
# machine.) DLWB_ROLE tells our own processes from the training's: those have
# none.

# paths RUN_ID: sets $id and $run. An id is a plain file name, nothing else.
paths() {
    case $1 in
    '' | .* | -* | *[!A-Za-z0-9._-]*)
        echo "dlwb: \"$1\" is not a run id" >&2
        exit 64
        ;;
    esac
    id=$1
    run=$HOME/.dlwb/runs/$id
}

# nap: a tenth of a second, or a second where sleep takes no fractions.
nap() {
    sleep 0.1 2>/dev/null || sleep 1
}

# clock: sets $now in hundredths of a second. It runs on while the time of day
# is being set.
clock() {
    if { read -r now _ </proc/uptime; } 2>/dev/null; then
        now=${now%.*}${now#*.}
    else
        now=$(date +%s)00
    fi
}

# stamp: sets $stamp to the time of day in seconds and, behind a "+", where
# the system tells it, the time since the boot in hundredths: the time of day
# may be wrong, and set at any moment.
stamp() {
    clock
    stamp=$(date +%s)
    [ ! -r /proc/uptime ] || stamp=$stamp+$now
}

# say WORDS: a line for the run's status file.
say() {
    stamp
    printf '%s %s\n' "$stamp" "$*" >>"$run/status"
}

# reserve FILE: takes the room for an exit record now, so that it can still be
# written when the disk is full.
reserve() {
    rm -f "$1" && printf '%63s\n' '' >"$1.tmp"
}

# record FILE CODE SIGNAL START: writes an exit record in the reserved room.
# START is a stamp.
record() {
    stamp
    printf '%s %s %s %s\n' "$2" "$3" "$4" "$stamp" 1<>"$1.tmp" &&
        mv -f "$1.tmp" "$1"
}

# capture NAME: makes a pipe into the log NAME. Descriptor 4 is for what writes
# to it; 5 is the other end, held open so that nothing that writes ever gets
# SIGPIPE. Sets $logger, which sees to it that there is a writer of the log: in
# a session of its own, as launchers end the groups of their ranks, and the
# last words are still to be written. The pipe's name, by which "members" knows
# what has inherited it, stays with it when the file is gone.
capture() {
    pipe=$run/$1.$$.pipe
    mkfifo "$pipe" || return 1
    exec 4<>"$pipe"
    exec 5<"$pipe"
    rm -f "$pipe"
    apart=
    ! command -v setsid >/dev/null || apart=setsid
    (
        trap '' HUP INT TERM
        exec 3>&- 4>&-
        set -- "$run" "$1"
        while DLWB_ROLE=log $apart sh "${0%/*}/log" "$@" <&5 5<&-; [ $? -gt 128 ]; do
            set -- "$1" "$2" again
        done
    ) >/dev/null 2>&1 &
    logger=$!
}

# captured: waits until what was written to the log is in it: for a second, as
# what the training has left behind may hold the pipe for ever.
captured() {
    exec 4>&-
    clock
    deadline=$((now + 100))
    while kill -0 "$logger" 2>/dev/null && clock && [ "$now" -lt "$deadline" ]; do
        sleep 0.02 2>/dev/null || sleep 1
    done
    exec 5<&-
}

# signal_of CODE: the signal's name behind a shell's exit code, or "-".
signal_of() {
    name=
    if [ "$1" -gt 128 ] && [ "$1" -le 160 ]; then
        name=$(kill -l "$1" 2>/dev/null)
    fi
    name=${name#SIG}
    echo "${name:--}"
}

# outcome CODE SIGNAL: as a person says it.
outcome() {
    if [ "$2" = - ]; then
        echo "exited with code $1"
    else
        echo "was killed by SIG$2"
    fi
}

# born PID: sets $born to when a live process began; false when it is dead.
# Together with the number it tells a process from a later one that got the same
# number. No fork where there is /proc: this is asked often.
born() {
    born=
    if [ -r /proc/self/stat ]; then
        # The name may hold anything, blanks, brackets and line ends too.
        stat=
        { while IFS= read -r part || [ -n "$part" ]; do stat="$stat $part"; done <"/proc/$1/stat"; } 2>/dev/null || return 1
        # shellcheck disable=SC2086
        set -- ${stat##*") "}
        case ${1-} in '' | Z | X) return 1 ;; esac
        shift 19
        born=$1
    else
        at=$(ps -o lstart= -p "$1") && [ -n "$at" ] || return 1
        # shellcheck disable=SC2086
        set -- $at
        born=$2-$3-$4-$5
    fi
}

# boot: sets $boot, which tells this boot of the machine from others; numbers start
# again there. A container that was restarted has the machine's boot id, and another
# process number 1.
boot() {
    boot=-
    { read -r boot </proc/sys/kernel/random/boot_id; } 2>/dev/null || return 0
    born 1
    boot=$boot/$born
}

# same_boot ID: whether it is this one; earlier scripts gave only the first half.
same_boot() {
    boot
    [ "$1" = "$boot" ] || [ "$1" = "${boot%/*}" ]
}

# supervisor: sets $sup and $sup_born from the run's pid file; false when that
# process is not there any more.
supervisor() {
    sup='' sup_born=''
    { read -r sup sup_born sup_boot <"$run/pid"; } 2>/dev/null || return 1
    same_boot "$sup_boot" && born "$sup" && [ "$born" = "$sup_born" ]
}

# members: a line "PID ROLE" for each live process of the run, without the
# calling script and its children. ROLE is "-" for what the training started.
#
# In the middle of an exec a process has no environment: it is asked again, and
# only who still has none is taken for somebody who has cleared it.
members() {
    supervisor || sup=''
    for _ in 1 2 3; do
        found=$(ours)
        case $found in *'?'*) sleep 0.02 2>/dev/null || sleep 1 ;; *) break ;; esac
    done
    [ -z "$found" ] || echo "$found" | tr '?' '-'
}

# ours: one look at that; ROLE is "?" for who has no environment.
ours() {
    if [ -r /proc/self/environ ]; then
        proc_table
    else
        ps_table
    fi 2>/dev/null | awk -v self=$$ -v sup="$sup" '
        $1 == "process" { parent[$2] = $3; session[$2] = $4; dead[$2] = ($5 ~ /[ZX]/) }
        $1 == "cookie" { ours[$2] = 1 }
        $1 == "blank" { role[$2] = "?" }
        $1 == "role" { role[$2] = $3 }
        END {
            caller[self] = 1
            for (p in parent) if (sup != "" && session[p] == sup) ours[p] = 1
            do {
                more = 0
                for (p in parent) {
                    if (ours[parent[p]] && !ours[p]) { ours[p] = 1; more = 1 }
                    if (caller[parent[p]] && !caller[p]) { caller[p] = 1; more = 1 }
                }
            } while (more)
            for (p in parent)
                if (ours[p] && !caller[p] && !dead[p] && p > 1)
                    print p, (p in role) ? role[p] : "-"
        }'
}

# proc_table: the processes of the machine as lines "process PID PPID SESSION
# STATE", and what their environments say as "cookie PID" and "role PID ROLE",
# or "blank PID" of one that says nothing.
# Only processes of our own user are asked: no other user can make root end
# somebody else's process by a forged environment.
proc_table() {
    # One list for all that is asked: who is born after it is met by the next
    # look, and not taken for one that has no role.
    stats='' environs='' prints=''
    for p in /proc/[0-9]*; do
        stats="$stats $p/stat"
        [ -O "$p" ] && environs="$environs $p/environ" prints="$prints $p/fd/1 $p/fd/2"
    done
    # shellcheck disable=SC2086
    head -c 4194304 $environs | tr '\0' '\n' | awk -v cookie="DLWB_RUN_DIR=$run" '
        function flush() { if (blank && pid != "") print "blank", pid }
        /^==> \/proc\/[0-9]+\/environ <==$/ { flush(); blank = 1; split($2, path, "/"); pid = path[3]; next }
        $0 != "" { blank = 0 }
        $0 == cookie { print "cookie", pid }
        /^DLWB_ROLE=[a-z]+$/ { print "role", pid, substr($0, 11) }
        END { flush() }'
    # After the environments: who has ended between the two is not there any more.
    # shellcheck disable=SC2086
    head -c 4096 $stats | awk '
        function flush() {
            # A name may hold blanks, brackets and line ends.
            if (pid != "" && match(text, /.*\) /)) {
                split(substr(text, RLENGTH + 1), f, " ")
                print "process", pid, f[2], f[4], f[1]
            }
            text = ""
        }
        /^==> \/proc\/[0-9]+\/stat <==$/ { flush(); split($2, path, "/"); pid = path[3]; next }
        { text = text " " $0 }
        END { flush() }'
    # What has cleared its environment and left its session still prints there.
    real=$(cd "$run" && pwd -P) || return 0
    # shellcheck disable=SC2086,SC2012
    ls -ln $prints | awk -v pipes=" -> $real/" '
        index($0, pipes) && /\.pipe( \(deleted\))?$/ {
            match($0, /\/proc\/[0-9]+/)
            print "cookie", substr($0, RSTART + 6, RLENGTH - 6)
        }'
    if read -r group <"$run/cgroup"; then
        case $group in /sys/*) group=${group#/sys/fs/cgroup} ;; esac
        find "/sys/fs/cgroup$group" "/sys/fs/cgroup/systemd$group" -name cgroup.procs -exec cat {} + |
            sed 's/^/cookie /'
    fi
}

# ps_table: the same for systems without /proc.
ps_table() {
    ps -axo pid=,ppid=,sess=,state= | sed 's/^/process /'
    ps -axEww -o pid=,command= | awk -v cookie="DLWB_RUN_DIR=$run" '{
        for (i = 2; i <= NF; i++) {
            if ($i == cookie) print "cookie", $1
            if ($i ~ /^DLWB_ROLE=[a-z]+$/) print "role", $1, substr($i, 11)
        }
    }'
}
