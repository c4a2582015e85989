# Above are set: engine, image, gpus, dir, python and mounts. Called as "python" it
# is the image's Python, called as "gone" it removes the containers of this directory.
# Inside of a container it starts the command as it is.
: "${engine?}" "${image?}" "${gpus?}" "${dir?}" "${python?}" "${mounts?}"

# gone prints the containers that stay. One whose client was killed before it began is
# nobody's: --rm is for those that end. Who has no engine any more has no containers, and
# nobody to ask (127); it may lie where the PATH led when the image was set up.
all() { "$engine" ps --all --no-trunc --format '{{.ID}} {{.Status}}' --filter "label=dlwb=$dir"; }
case $0 in */gone)
	PATH=$PATH:$(awk -F '\t' '$1 == "PATH" { print $2 }' "$dir/baseline")
	command -v "$engine" >/dev/null || exit 127
	for dlwb_try in 1 2 3 4 5; do
		left=$(all) || exit 1
		[ -n "$left" ] || exit 0
		[ "$dlwb_try" = 1 ] || sleep 1
		for id in $(printf '%s\n' "$left" | cut -d ' ' -f 1); do
			if [ "$engine" = podman ]; then set -- --time 0; fi
			"$engine" rm --force "$@" "$id" >/dev/null 2>&1
		done
	done
	all
	exit
	;;
esac

# Who brings the output is not told to end: it ends when what runs inside has, and
# removes the container. Those who end a run know it by its role, as it is when a
# program is started.
if [ -z "${DLWB_CONTAINER-}" ] && [ -n "${DLWB_RUN_DIR-}" ] && [ "${DLWB_ROLE-}" != log ]; then
	export DLWB_ROLE=log
	exec "$0" "$@"
fi
case $0 in */python) set -- "$python" "$@" ;; esac
[ -z "${DLWB_CONTAINER-}" ] || exec "$@"

# The supervisor of a run sees and ends what runs inside: same numbers of processes,
# same user. Ranks of one node share memory and network as without containers.
set -- "$image" "$@"
# shellcheck disable=SC2013 # names are words
for dlwb_name in $(awk -v base="$dir/baseline" 'BEGIN {
	while ((getline text < base) > 0) before[text] = 1
	split("DLWB_ROLE HOME USER LOGNAME PWD OLDPWD SHLVL _ HOSTNAME", own, " ")
	for (i in own) skip[own[i]] = 1
	for (k in ENVIRON) {
		v = ENVIRON[k]; gsub(/\n/, " ", v)
		if (!(k in skip) && !((k "\t" v) in before) && k ~ /^[A-Za-z_][A-Za-z0-9_]*$/ && k !~ /^dlwb_/) print k
	}
}'); do
	set -- --env "$dlwb_name" "$@"
done
IFS='
'
set -f
for dlwb_mount in $mounts; do
	case $dlwb_mount in
	*:/*) ;;
	*:ro) dlwb_mount=${dlwb_mount%:ro}:${dlwb_mount%:ro}:ro ;;
	*) dlwb_mount=$dlwb_mount:$dlwb_mount ;;
	esac
	set -- --volume "$dlwb_mount" "$@"
done
unset IFS
case $PWD/ in "$HOME/dlwb/"* | "$HOME/.dlwb/"*) ;; *) [ "$PWD" = / ] || [ "$PWD" = "$HOME" ] || set -- --volume "$PWD:$PWD" "$@" ;; esac
[ -z "$gpus" ] || set -- "$gpus" "$@"
[ ! -d /dev/infiniband ] || set -- --device /dev/infiniband "$@"
if [ "$engine" = podman ]; then
	[ "$(id -u)" = 0 ] || set -- --userns keep-id "$@"
	set -- --security-opt label=disable --pids-limit=-1 "$@"
else
	for dlwb_name in $(id -G); do set -- --group-add "$dlwb_name" "$@"; done
	[ ! -d /dev/infiniband ] || set -- --ulimit memlock=-1 "$@"
fi
set -- --network host --ipc host --pid host --user "$(id -u):$(id -g)" \
	--volume "$dir/home:$HOME" --volume "$HOME/dlwb:$HOME/dlwb" --volume "$HOME/.dlwb:$HOME/.dlwb" --workdir "$PWD" \
	--env DLWB_CONTAINER=1 --env "HOME=$HOME" --env "USER=$(id -un)" --env "LOGNAME=$(id -un)" --label "dlwb=$dir" --entrypoint '' "$@"
mkdir -p "$HOME/.dlwb"
if [ -z "${DLWB_RUN_DIR-}" ] || [ "$engine" != podman ]; then
	exec "$engine" run --rm "$@"
fi

# podman has a process beside each container that it waits for. Where that is ended,
# podman would wait for ever. A machine that is busy needs its time
# between the end of that process and podman's own: only after that it is ended.
files=$dir/.container.$$
"$engine" run --rm --conmon-pidfile "$files.pid" --cidfile "$files.cid" "$@" &
client=$!
(
	gone=0
	while kill -0 "$client" 2>/dev/null && [ "$gone" -lt 15 ]; do
		sleep 1
		[ ! -s "$files.pid" ] || [ -d "/proc/$(cat "$files.pid")" ] || gone=$((gone + 1))
	done
	[ "$gone" -lt 15 ] || kill -9 "$client" 2>/dev/null
) &
watcher=$!
wait "$client"
code=$?
kill "$watcher" 2>/dev/null
if [ "$code" -ge 128 ] && [ -s "$files.cid" ]; then
	"$engine" rm --force --time 0 --ignore "$(cat "$files.cid")" >/dev/null 2>&1
fi
rm -f "$files.pid" "$files.cid"
exit "$code"
