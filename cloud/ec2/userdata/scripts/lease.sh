#!/bin/sh
# lease run|extend: the promise that a paid machine holds itself. It shuts the
# machine down when nobody needs it, or when its time or its money is spent,
# also when nobody ever comes back.
#
# "lease run" is called by dlwb-lease.service, as root; "lease extend SECONDS
# [--budget SECONDS] [--once ID]" by dlwb. Without a word it only defines what
# is below. Leaves in /var/lib/dlwb: used (what was counted), lease.state,
# leaving and notice (see watch), extend, log. Time is what the machine has run for: the
# time of day may jump by days and changes nothing.
dir=/var/lib/dlwb

# What settings may change. Seconds; a bound of 0 is none.
bootstrap=1800 idle_limit=3600 lifetime=86400 budget=0
drain_limit=600 fetch_limit=120 s3='' paths='' cluster='' life='' spot=0 imds=http://169.254.169.254
homes='/home/* /root' terminals=/dev/pts every=10
# A tick that is late counts as a minute at most where nobody could look:
# after a freeze there is still time to come back. The hard bounds count all.
gap=60
# What can't be known is taken for work, but not for longer than this in a row.
doubt_limit=7200
# A GPU below this many percent does nothing.
gpu_idle=5

# clock: sets $up, the seconds since boot.
clock() {
    read -r up _ </proc/uptime
    up=${up%.*}
}

nap() {
    sleep 0.2 2>/dev/null || sleep 1
}

say() {
    printf '%s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ) $*" >>"$dir/log"
}

# keep FILE WORDS: one line, written over the one before in the room that it
# has: a full disk keeps nothing from being counted.
keep() {
    file=$1
    shift
    printf '%-120s\n' "$*" 1<>"$dir/$file"
}

# number WORD: true for a decimal number that arithmetic can take.
number() {
    case $1 in '' | *[!0-9]* | 0?* | ????????????*) return 1 ;; esac
}

# process PID: the state, parent and start of a process as $state, $parent and
# $born; false when it is dead. No fork: this is asked often.
process() {
    # The name may hold anything, blanks, brackets and line ends too.
    stat=
    { while IFS= read -r part || [ -n "$part" ]; do stat="$stat $part"; done <"/proc/$1/stat"; } 2>/dev/null || return 1
    # shellcheck disable=SC2086
    set -- ${stat##*") "}
    state=${1-} parent=${2-}
    case $state in '' | Z | X) return 1 ;; esac
    shift 19
    born=$1
}

# child PID: whether it is still a child of ours.
child() {
    [ -n "$1" ] && process "$1" && [ "$parent" = $$ ]
}

# bounded SECONDS COMMAND…: runs it for so long at most. What can't even be
# killed is left behind.
bounded() {
    clock
    end=$((up + $1))
    shift
    "$@" </dev/null >>"$dir/log" 2>&1 &
    it=$!
    while child $it; do
        clock
        if [ "$up" -ge "$end" ]; then
            kill -TERM $it
            nap
            kill -KILL $it 2>/dev/null
            return 124
        fi
        nap
    done
    wait $it
}

# as_owner HOME COMMAND…: runs it as the user whose home that is.
as_owner() (
    HOME=$1
    owner=$(stat -c %U "$1/.dlwb")
    export HOME
    shift
    cd "$HOME" || exit
    # What is run for a user may be chosen when memory runs out; the lease not.
    { echo 0 >/proc/self/oom_score_adj; } 2>/dev/null
    [ "$owner" != "$(id -un)" ] || exec "$@"
    ! command -v runuser >/dev/null || exec runuser -u "$owner" -- env HOME="$HOME" "$@"
    # shellcheck disable=SC2016
    exec su -p -s /bin/sh -c 'exec "$@"' -- "$owner" sh "$@"
)

# service HOME RUN: whether a run is a server of dlwb's own (Jupyter,
# TensorBoard). It runs until the end of the machine and keeps nothing alive;
# $service is its log.
service() {
    { read -r name _ <"$2/procs" && read -r id _ <"$1/.dlwb/$name"; } 2>/dev/null || return 1
    service=$2/$name.log
    [ "$id" = "${2##*/}" ]
}

# running HOME RUN: whether a run is alive: its supervise is, or something that
# it has started.
running() {
    [ -d "$2/lock" ] && [ ! -e "$2/exit" ] || return 1
    ! service "$1" "$2" || return 1
    sup=''
    [ ! -f "$2/pid" ] || read -r sup sup_born sup_boot <"$2/pid"
    if number "$sup" && [ "${sup_boot%%/*}" = "$boot" ] && process "$sup" && [ "$born" = "$sup_born" ]; then
        return 0
    fi
    grep -qsF "DLWB_RUN_DIR=$2" /proc/[0-9]*/environ
}

# each_run COMMAND…: calls it with the home and the directory of each live run.
each_run() {
    for home in $homes; do
        for run in "$home"/.dlwb/runs/*; do
            ! running "$home" "$run" || "$@" "$home" "$run"
        done
    done
}

# look: what there is to see in the homes and at the terminals. An answer is
# known by the time at which it was asked for. What a person or dlwb does shows
# as a change: of a terminal's last input, of what lies in ~/.dlwb, of the log
# of a service.
look() {
    live=0 seen=0
    set --
    each_run eval 'live=1; :'
    for home in $homes; do
        [ -d "$home/.dlwb" ] || continue
        seen=1
        set -- "$@" "$home/.dlwb" "$home"/.dlwb/*
        for run in "$home"/.dlwb/runs/*; do
            ! service "$home" "$run" || set -- "$@" "$service"
        done
    done
    for terminal in "$terminals"/[0-9]*; do
        [ ! -e "$terminal" ] || seen=1
    done
    stamp=$({
        stat -c '%n %X' "$terminals"/[0-9]*
        [ $# -eq 0 ] || stat -c '%n %Y' "$@"
    } 2>/dev/null | cksum)
    keep .look "$up $live $seen $stamp"
}

smi() {
    exec nvidia-smi --query-gpu=utilization.gpu --format=csv,noheader,nounits >"$dir/.gpu" 2>/dev/null
}

# ask NAME: asks in the background, as a driver or a dead network disk may hang
# whoever touches it. What hangs still is not asked again.
ask() {
    eval "asked=\$$1_pid"
    ! child "$asked" || return
    "$1" </dev/null >/dev/null 2>&1 &
    eval "$1_pid=$!"
}

# answered PID: whether the question has been answered in time, and well.
answered() {
    [ -n "$1" ] || return
    if child "$1"; then
        kill -KILL "$1"
        return 1
    fi
    wait "$1" 2>/dev/null
}

# facts: sets $live (a run), $hands (somebody has touched something), $seen
# (somebody has been here) and $gpu, each 0, 1 or ?.
facts() {
    ask look
    gpu=0
    ! command -v nvidia-smi >/dev/null || ask smi
    began=$up
    while child "$look_pid" || child "$smi_pid"; do
        clock
        [ $((up - began)) -lt 5 ] || break
        nap
    done
    up=$began
    read_look
    [ -z "$smi_pid" ] || read_gpu
}

# read_look: where the runs can't be seen, those last seen are taken to be
# still there: what was alive is not ended by a guess.
read_look() {
    was=$stamp hands='?'
    if answered "$look_pid"; then
        look_pid=''
        read -r asked l s stamp <"$dir/.look" && [ "$asked" = "$up" ] && live=$l seen=$s hands=0
    fi
    if [ "$hands" = '?' ]; then
        stamp=$was
    elif [ -n "$was" ] && [ "$stamp" != "$was" ]; then
        hands=1
    fi
}

# read_gpu: a nvidia-smi without a card is no GPU; a card that can't be asked
# is one that may work.
read_gpu() {
    gpu='?'
    if answered "$smi_pid"; then
        gpu=0
        [ -s "$dir/.gpu" ] || gpu='?'
        while read -r percent; do
            if ! number "$percent"; then
                [ "$gpu" = 1 ] || gpu='?'
            elif [ "$percent" -ge "$gpu_idle" ]; then
                gpu=1
            fi
        done <"$dir/.gpu"
    elif ! child "$smi_pid" && ! card; then
        gpu=0
    fi
    child "$smi_pid" || smi_pid=''
}

# card: whether this machine has a GPU of NVIDIA's.
card() {
    for vendor in /sys/bus/pci/devices/*/vendor; do
        { read -r id <"$vendor"; } 2>/dev/null && [ "$id" = 0x10de ] && return
    done
}

# load: takes up the count of an earlier start or boot. A boot begins at 0;
# the first one where the lease was begun.
load() {
    spent=0 last=$up idle=0 doubt=0 known=0 was='' stamp=''
    live=0 hands=0 seen=0 gpu=0
    { read -r spent last idle doubt known was <"$dir/used"; } 2>/dev/null
    for word in "$spent" "$last" "$idle" "$doubt" "$known"; do
        number "$word" || spent=$up last=$up idle=0 doubt=0 known=0 was=$boot
    done
    if [ -n "$was" ] && [ "$was" != "$boot" ]; then
        last=0
        [ "$known" = 0 ] || idle=0 doubt=0
    fi
}

save() {
    keep used "$spent $last $idle $doubt $known $boot"
    shown=$left
    [ "$shown" -ge 0 ] || shown=0
    keep lease.state "lease up=$spent bound=$bound left=$shown idle=$idle live=$live"
}

# extensions: sets $more and $paid, by how much dlwb has moved the lifetime and
# the budget.
extensions() {
    more=0 paid=0
    [ -f "$dir/extend" ] || return
    while read -r a b _; do
        if number "$a" && number "$b"; then more=$((more + a)) paid=$((paid + b)); fi
    done <"$dir/extend"
}

# count: takes note of the time since the last tick.
count() {
    gone=$((up - last)) last=$up
    [ "$gone" -ge 0 ] || gone=0
    spent=$((spent + gone))
    [ "$gone" -le "$gap" ] || gone=$gap
    if [ "$known$seen" = 01 ]; then known=1 idle=0 doubt=0; fi
    case $live$hands$gpu in
    *1*) idle=0 doubt=0 ;;
    *\?*) if [ "$doubt" -lt "$doubt_limit" ]; then doubt=$((doubt + gone)); else idle=$((idle + gone)); fi ;;
    *) idle=$((idle + gone)) ;;
    esac
}

# judge: sets $bound, the one that comes first, and $left until then.
judge() {
    bound=none left=0
    extensions
    nearer lifetime "$lifetime" $((lifetime + more - spent))
    nearer budget "$budget" $((budget + paid - spent))
    if [ "$known" = 1 ]; then
        nearer idle "$idle_limit" $((idle_limit - idle))
    else
        nearer bootstrap "$bootstrap" $((bootstrap - idle))
    fi
}

# nearer BOUND LIMIT LEFT
nearer() {
    [ "$2" -gt 0 ] || return 0
    if [ "$bound" = none ] || [ "$3" -lt "$left" ]; then bound=$1 left=$3; fi
}

# tick: one look, one decision. What ends only because nothing is done is
# looked at once more in the moment in which it would end.
tick() {
    clock
    facts
    count
    judge
    case $bound in idle | bootstrap)
        if [ "$left" -le 0 ]; then
            facts
            count
            judge
        fi
        ;;
    esac
    save
    [ "$bound" != none ] || return 0
    if [ "$left" -le 0 ]; then
        finish
    elif [ "$left" -gt 300 ]; then
        warned=
    elif [ -z "$warned" ]; then
        warned=1
        warn "this machine shuts down in $left seconds: $(reason)"
    fi
}

reason() {
    case $bound in
    bootstrap) echo "nobody has used it since it was started" ;;
    idle) echo "no run, no terminal and no GPU of it has been in use for $idle seconds" ;;
    lifetime) echo "its lifetime ends" ;;
    budget) echo "its budget is spent" ;;
    esac
}

# warn WORDS: to whoever sits at a terminal of this machine.
warn() {
    say "$*"
    ! command -v wall >/dev/null || echo "dlwb: $*" | timeout 10 wall >/dev/null 2>&1 &
}

# finish: saves what can be saved, for a bounded time, and shuts the machine
# down, again and again until that is true.
finish() {
    keep ending "$bound"
    why="lease: $(reason)"
    warn "this machine shuts down now: $(reason)"
    bounded 90 stop_runs
    if attached; then
        keep leaving "leaving id=$spent bound=$bound"
        bounded "$fetch_limit" await_fetch
    fi
    [ -z "$s3" ] || bounded $((drain_limit + 10)) drain
    tries=0
    while :; do
        tries=$((tries + 1))
        power_off
        sleep 60
    done
}

# attached: whether a dlwb watches this machine.
attached() {
    grep -qs "$dir/[w]atch" /proc/[0-9]*/cmdline
}

# await_fetch: until the dlwb that watches has brought the results home, which
# it says by the id of this end, or has gone.
await_fetch() {
    while attached; do
        for home in $homes; do
            { read -r said <"$home/.dlwb/fetched"; } 2>/dev/null && [ "$said" = "$spent" ] && return
        done
        nap
    done
}

stop_runs() {
    each_run stop_run -
    wait
}

# stop_run GRACE HOME RUN: in the background, as all are stopped at once.
stop_run() {
    as_owner "$2" sh "$2/.dlwb/bin/stop" "${3##*/}" "$1" "$why" &
}

# drain: what the profile wants kept goes to S3, as the user, with what the
# instance profile allows.
drain() {
    clock
    until=$((up + drain_limit))
    for home in $homes; do
        [ ! -d "$home/.dlwb" ] || printf '%s\n' "$paths" | while IFS= read -r path; do
            clock
            from=$home/$path to=$s3/$cluster/$life/$(uname -n)/$path verb=cp
            if [ "$up" -ge "$until" ] || [ ! -e "$from" ]; then continue; fi
            [ ! -d "$from" ] || verb=sync
            as_owner "$home" timeout -k 5 $((until - up)) aws s3 $verb "$from" "$to" --only-show-errors </dev/null
            say "drained $from to $to: exit code $?"
        done
    done
}

# power_off: the gentle ways first; the last ones are only for a real machine,
# never for a test that runs a copy of this script.
power_off() {
    say "power off, try $tries"
    bounded 20 shutdown -h now || bounded 20 poweroff || bounded 20 systemctl poweroff
    case $0 in /var/lib/[d]lwb/lease) ;; *) return ;; esac
    [ "$tries" -ge 4 ] || return
    bounded 20 systemctl poweroff --force --force || bounded 20 halt -f -p
    for key in s u o; do
        { echo $key >/proc/sysrq-trigger; } 2>/dev/null
        sleep 2
    done
}

# notices: asks every 5 seconds whether EC2 wants a spot machine back.
notices() {
    while owner; do
        ! answer=$(instance_action 2>/dev/null | tr -d '\n') || [ -z "$answer" ] || heed "$answer"
        sleep 5
    done
}

# instance_action: prints what the metadata service says, by version 2 of it.
# 404 is what it says otherwise.
instance_action() {
    ttl='X-aws-ec2-metadata-token-ttl-seconds: 60' with='X-aws-ec2-metadata-token:'
    latest=$imds/latest what=$imds/latest/meta-data/spot/instance-action
    if command -v curl >/dev/null; then
        token=$(curl -sf -m 2 --noproxy '*' -X PUT -H "$ttl" "$latest/api/token") || return
        printf '%s' "$with $token" | curl -sf -m 2 --noproxy '*' -H @- "$what"
    else
        token=$(wget -qO - -T 2 -t 1 --no-proxy --method=PUT --header "$ttl" "$latest/api/token") || return
        wget -qO - -T 2 -t 1 --no-proxy --header "$with $token" "$what"
    fi
}

# heed JSON: writes the notice down and tells the runs, once. A run gets the
# time that is left, to save what it has.
heed() {
    action=$(printf '%s' "$1" | sed -n 's/.*"action" *: *"\([a-z]*\)".*/\1/p')
    at=$(printf '%s' "$1" | sed -n 's/.*"time" *: *"\([0-9-]*\)T\([0-9:]*\)Z".*/\1 \2/p')
    [ -n "$action" ] || return
    at=$(date -u -d "$at" +%s 2>/dev/null)
    number "$at" || at=0
    old=''
    { read -r old <"$dir/notice"; } 2>/dev/null
    [ "$old" != "notice action=$action at=$at" ] || return
    keep notice "notice action=$action at=$at"
    seconds=$((at - $(date +%s)))
    [ "$seconds" -le 120 ] || seconds=120
    [ "$seconds" -ge 20 ] || seconds=20
    why="notice: EC2 takes this machine back in $seconds seconds ($action)"
    warn "$why"
    (
        each_run tell_run
        wait
        [ -z "$s3" ] || drain
    ) &
}

# tell_run HOME RUN: the run's own way to take it, or a stop.
tell_run() {
    if [ -f "$2/on_notice" ]; then
        # shellcheck disable=SC2016
        as_owner "$1" sh -c 'cd "$1" && shift && exec sh ./on_notice "$@"' sh "$2" "$action" "$seconds" &
    else
        stop_run $(((seconds - 10) * 1000)) "$1" "$2"
    fi
}

# owner: whether this is the lease that was started last.
owner() {
    { read -r pid _ <"$dir/pid"; } 2>/dev/null && [ "$pid" = $$ ]
}

# bye: a last count before the machine, or this lease, ends.
bye() {
    clock
    count
    save
    exit 0
}

run() {
    umask 022
    PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    # shellcheck source=/dev/null
    [ ! -r "$dir/settings" ] || . "$dir/settings"
    look_pid='' smi_pid='' notices_pid='' warned='' boot=-
    read -r boot </proc/sys/kernel/random/boot_id
    keep pid $$
    clock
    load
    # What an earlier boot was told is no longer so.
    [ "$was" = "$boot" ] || rm -f "$dir/notice" "$dir/ending" "$dir/leaving"
    say "the lease is held"
    trap bye TERM
    while owner; do
        [ "$spot" = 0 ] || child "$notices_pid" || ask notices
        tick
        clock
        pause=$((last + every - up))
        [ "$pause" -ge 1 ] || pause=1
        sleep "$pause"
    done
    exit 0
}

usage() {
    echo "usage: lease run | lease extend SECONDS [--budget SECONDS] [--once ID]" >&2
    exit 64
}

# extend SECONDS [--budget SECONDS] [--once ID]: two that have the same ID move
# the end once.
extend() {
    by=$1 budget_by=0 once=-
    shift
    while [ $# -gt 1 ]; do
        case $1 in
        --budget) budget_by=$2 ;;
        --once) once=$2 ;;
        *) break ;;
        esac
        shift 2
    done
    case $once in *[!A-Za-z0-9-]*) usage ;; esac
    if [ $# -gt 0 ] || ! number "$by" || ! number "$budget_by"; then usage; fi
    if [ -f "$dir/ending" ]; then
        echo "dlwb lease: too late, this machine is shutting down" >&2
        exit 75
    fi
    if [ "$once" = - ] || ! grep -qs " $once\$" "$dir/extend"; then
        echo "$by $budget_by $once" >>"$dir/extend" || exit 77
    fi
}

case ${1-} in
'') ;;
run) run ;;
extend)
    shift
    extend "$@"
    ;;
*) usage ;;
esac
