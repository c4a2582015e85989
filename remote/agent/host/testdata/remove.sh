#!/bin/sh
# remove: gives a host back: ends what one life of a cluster still runs there,
# removes what it put there and looks again. Run by dlwb (Down) over ssh,
# through the standard input of sh, with cluster, life and peer (what the
# node-to-node lines of authorized_keys begin with) set in front. Does nothing
# where ~/.dlwb/cluster is not of this life. It goes last, so that whoever
# comes back after an interruption knows that there is more to do.
: "${cluster?}" "${life?}" "${peer?}"

say() { printf 'dlwb\t%s\t%s\n' "$1" "$2"; }

# live: the processes of runs in this home, as lines "PID RUN_DIRECTORY".
live() {
    cookie=DLWB_RUN_DIR=$HOME/.dlwb/runs/
    if [ -r /proc/self/environ ]; then
        grep -lsF "$cookie" /proc/[0-9]*/environ | while IFS=/ read -r _ _ pid _; do
            [ -O "/proc/$pid" ] || continue
            dir=$(tr '\0' '\n' 2>/dev/null <"/proc/$pid/environ" | sed -n 's/^DLWB_RUN_DIR=//p')
            if [ -n "$dir" ]; then echo "$pid $dir"; fi
        done
    else
        ps -xEww -o pid=,command= | awk -v cookie="$cookie" '{
            for (i = 2; i <= NF; i++) if (index($i, cookie) == 1) print $1, substr($i, 14)
        }'
    fi
}

# had PLACE: whether it was there before this cluster.
had() {
    case " $before " in *" $1 "*) return 0 ;; esac
    return 1
}

# unpair takes our lines out of authorized_keys and keeps its inode and mode:
# it may be a link or watched.
unpair() {
    keys=.ssh/authorized_keys
    if grep -qF "$peer" "$keys" 2>/dev/null; then
        kept=$(grep -vF "$peer" "$keys")
        if [ -n "$kept" ]; then printf '%s\n' "$kept" >"$keys"; else : >"$keys"; fi
    fi
    if [ -f "$keys" ] && [ ! -s "$keys" ] && ! had "$keys"; then rm -f "$keys"; fi
    had .ssh || rmdir .ssh 2>/dev/null
}

# again: what is still there.
again() {
    say live "$(live | grep -c .)"
    for place in .dlwb "dlwb/$cluster" ${elsewhere:+"$elsewhere"}; do
        if [ -e "$place" ]; then say left "$(find "$place" ! -type d 2>/dev/null | grep -c .) $place"; fi
    done
    if grep -qF "$peer" .ssh/authorized_keys 2>/dev/null; then say left "1 .ssh/authorized_keys"; fi
    say end ok
}

trap '' HUP PIPE
cd "$HOME" || exit 74
holder='' before='' elsewhere=''
if [ -r .dlwb/cluster ]; then
    while read -r key value; do
        say "held_$key" "$value"
        case $key in
        life) holder=$value ;;
        had) before=$value ;;
        dir) if [ -n "$value" ]; then elsewhere=$value/dlwb-$cluster; fi ;;
        esac
    done <.dlwb/cluster
fi
if [ "$holder" != "$life" ]; then
    say end ok
    exit 0
fi
live | cut -d ' ' -f 2- | sort -u | while read -r run; do
    sh .dlwb/bin/stop "${run##*/}" - the cluster was taken down </dev/null >/dev/null 2>&1
done
if live | grep . >/dev/null; then # their files may be what tells why
    again
    exit 0
fi
for record in .dlwb/runs/*/cgroup; do # of runs whose supervisor was killed
    read -r group 2>/dev/null <"$record" || continue
    case $group in
    *..*) ;;
    /sys/fs/cgroup/*/dlwb-* | /sys/fs/cgroup/dlwb-*) rmdir "$group" 2>/dev/null ;;
    esac
done
unpair
rm -rf "dlwb/$cluster"
if [ -n "$elsewhere" ]; then rm -rf "$elsewhere"; fi
had dlwb || rmdir dlwb 2>/dev/null
if had .dlwb; then
    rm -rf .dlwb/bin .dlwb/runs .dlwb/sync .dlwb/kept .dlwb/compat .dlwb/in .dlwb/peers .dlwb/peer_key .dlwb/peer_known_hosts
    rm -f .dlwb/claim.* .dlwb/cluster
    rmdir .dlwb 2>/dev/null || say others "$(find .dlwb ! -name .dlwb -prune | head -n 3 | tr '\n' ' ')"
else
    find .dlwb ! -name .dlwb ! -name cluster -prune -exec rm -rf {} +
    rm -f .dlwb/cluster
    rmdir .dlwb
fi
again
