#!/bin/sh
# look: what a host is and has, as lines "dlwb<TAB>KEY<TAB>VALUE". Run by
# dlwb (Check) over ssh, through the standard input of sh, with dir and
# interpreter (what the profile gives for this host; empty: nothing) set in
# front; changes nothing, leaves nothing.
: "${dir?}" "${interpreter?}"

say() { printf 'dlwb\t%s\t%s\n' "$1" "$2"; }

# gpu_users LIST: who has processes on the GPUs: "PID USER MIB NUMBER" in lines,
# where LIST is what nvidia-smi -L says; NUMBER is - when it is not known.
gpu_users() {
    $soon nvidia-smi --query-compute-apps=pid,used_memory,gpu_uuid --format=csv,noheader,nounits 2>/dev/null |
        while IFS=', ' read -r pid mib uuid _; do
            number=-
            if [ -n "$uuid" ]; then
                number=$(printf '%s\n' "$1" | sed -n "s/^GPU \([0-9]*\): .*(UUID: $uuid).*/\1/p")
            fi
            who=$(ps -o user= -p "$pid" 2>/dev/null) && [ -n "$who" ] && say gpu_user "$pid $who $mib ${number:--}"
        done
}

# free_of KEY PLACE: what can still be put there, in KiB, and how many files.
free_of() {
    df -Pk "$2" 2>/dev/null | awk -v key="$1" 'NR == 2 { printf "dlwb\t%s\t%s\n", key, $4 }'
    df -Pi "$2" 2>/dev/null | awk -v key="$1_files" 'NR == 2 && $4 ~ /^[0-9]+$/ && $2 > 0 { printf "dlwb\t%s\t%s\n", key, $4 }'
}

say now "$(date +%s)"
say os "$(uname -s)"
say user "$(id -un)"
say home "$HOME"
cd "$HOME" || exit 1
# Together these tell a machine from its copies, and from another with the same
# home directory on the network.
say machine "$(cat /etc/machine-id /proc/sys/kernel/random/boot_id 2>/dev/null | tr '\n' ' ')$(uname -n)"
# shellcheck disable=SC2012
say inode "$(ls -di . | awk '{ print $1 }')"
df -Pk . 2>/dev/null | awk 'NR == 2 { printf "dlwb\tdisk\t%s\n", $1 }'
free_of free .
[ -w . ] || say read_only "$HOME"
if [ -n "$dir" ]; then
    if [ ! -d "$dir" ]; then
        say no_dir "$dir"
    elif [ ! -w "$dir" ]; then
        say read_only "$dir"
    else
        free_of dir_free "$dir"
    fi
fi
if [ -n "$interpreter" ] && ! "$interpreter" -c 'import sys' >/dev/null 2>&1; then say no_python "$interpreter"; fi
for python in ${interpreter:+"$interpreter"} python3 /opt/conda/bin/python3 miniconda3/bin/python3 anaconda3/bin/python3 miniforge3/bin/python3; do
    if version=$("$python" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null); then
        say python "$version"
        break
    fi
done
if [ -r .dlwb/cluster ]; then
    while read -r key value; do say "held_$key" "$value"; done <.dlwb/cluster
fi
# The GPUs come last: nvidia-smi may hang, and what was said before counts.
if command -v nvidia-smi >/dev/null 2>&1; then
    soon=
    if command -v timeout >/dev/null 2>&1; then soon='timeout 8'; fi
    if list=$($soon nvidia-smi -L 2>/dev/null); then
        say gpus "$(printf '%s\n' "$list" | grep -c '^GPU ')"
        say gpu "$(printf '%s\n' "$list" | sed -n '1s/^GPU [0-9]*: \(.*\) (UUID.*/\1/p')"
        say gpu_numbers "$(printf '%s\n' "$list" | sed -n 's/^GPU \([0-9]*\): .*/\1/p' | tr '\n' ' ')"
        gpu_users "$list"
    else
        say gpus_silent "$?"
    fi
else
    say gpus 0
fi
say end ok
