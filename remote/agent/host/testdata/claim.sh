#!/bin/sh
# claim: takes a host for one cluster. Run by dlwb (Up) over ssh, through the
# standard input of sh, with cluster, life, owner, since and dir (where the code
# is to lie; empty: in the home directory) set in front. Leaves
# the file ~/.dlwb/cluster, which says who has the host and which of the places
# that dlwb writes to were there before. The file appears whole or not at all,
# and for one of two only: by a hard link, or where there are none by an
# exclusive write. With dir it leaves dir/dlwb-CLUSTER too, and ~/dlwb/CLUSTER as
# a link to it.
: "${cluster?}" "${life?}" "${owner?}" "${since?}" "${dir?}"

say() { printf 'dlwb\t%s\t%s\n' "$1" "$2"; }

# holder: the life that has the host.
holder() { sed -n 's/^life //p' .dlwb/cluster 2>/dev/null; }

# settle makes the place for the code. What was there before is nobody's to take.
settle() {
    if [ -L "dlwb/$cluster" ] && [ -d "dlwb/$cluster/." ]; then return 0; fi
    mkdir -p dlwb && { [ -d "$elsewhere" ] || mkdir "$elsewhere"; } && ln -s "$elsewhere" "dlwb/$cluster"
}

# unclaim undoes a claim that was made just now.
unclaim() {
    rmdir "$elsewhere" 2>/dev/null
    rm -f .dlwb/cluster
    for made in dlwb .dlwb; do
        case "$had " in *" $made "*) ;; *) rmdir "$made" 2>/dev/null ;; esac
    done
}

umask 077
cd "$HOME" || exit 74
elsewhere=
if [ -n "$dir" ]; then
    elsewhere=$dir/dlwb-$cluster
    if [ ! -e .dlwb/cluster ]; then
        if [ ! -d "$dir" ]; then echo "$dir is no directory there" >&2; exit 74; fi
        for there in "$elsewhere" "dlwb/$cluster"; do
            if [ -e "$there" ]; then echo "$there is there already" >&2; exit 74; fi
        done
    fi
fi
had='' fresh=''
for place in .dlwb .ssh .ssh/authorized_keys dlwb; do
    if [ -e "$place" ]; then had="$had $place"; fi
done
mkdir -p .dlwb || exit 74
mine=.dlwb/claim.$$
printf '%s\n' "cluster $cluster" "life $life" "owner $owner" "since $since" "dir $dir" "had$had" >"$mine" || {
    rm -f "$mine"
    exit 74
}
if ln "$mine" .dlwb/cluster 2>/dev/null ||
    { [ ! -e .dlwb/cluster ] && (set -C && cat "$mine" >.dlwb/cluster) 2>/dev/null; }; then
    say claimed new
    fresh=1
fi
rm -f "$mine"
if [ -n "$elsewhere" ] && [ "$(holder)" = "$life" ] && ! settle; then
    if [ -n "$fresh" ]; then unclaim; fi
    exit 74
fi
while read -r key value; do say "held_$key" "$value"; done <.dlwb/cluster || exit 74
say end ok
