# Above are set: engine, image, gpus, dir, python and mounts. Called as "python" it
# is the image's Python. Inside of a container it starts the command as it is.
: "${engine?}" "${image?}" "${gpus?}" "${dir?}" "${python?}" "${mounts?}"
case $0 in */python) set -- "$python" "$@" ;; esac
[ -z "${DLWB_CONTAINER-}" ] || exec "$@"

# The supervisor of a run sees and ends what runs inside: same numbers of processes,
# same user. Ranks of one node share memory and network as without containers.
set -- "$image" "$@"
# shellcheck disable=SC2013 # names are words
for dlwb_name in $(awk -v base="$dir/baseline" 'BEGIN {
	while ((getline text < base) > 0) before[text] = 1
	split("HOME USER LOGNAME PWD OLDPWD SHLVL _ HOSTNAME", own, " ")
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
mkdir -p "$HOME/.dlwb"
exec "$engine" run --rm --network host --ipc host --pid host --user "$(id -u):$(id -g)" \
	--volume "$dir/home:$HOME" --volume "$HOME/dlwb:$HOME/dlwb" --volume "$HOME/.dlwb:$HOME/.dlwb" --workdir "$PWD" \
	--env DLWB_CONTAINER=1 --env "HOME=$HOME" --env "USER=$(id -un)" --env "LOGNAME=$(id -un)" --label dlwb=1 --entrypoint '' "$@"
