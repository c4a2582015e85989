#!/bin/sh
# Open MPI in the pods of an MPIJob. "run" is mpirun, in the pod of the launcher; "node"
# is the SSH server of another pod, by which mpirun starts its daemon there; "rank" is
# what mpirun starts in place of each rank.
work=/dlwb/work
hosts=/etc/mpi/hostfile
# The keys are the operator's, made for this job; no pod has a host key that another one
# could know.
ssh="-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -o ConnectTimeout=5 -o BatchMode=yes"
lacks() {
	echo "dlwb: there is no $1 in the image" >&2
	exit 127
}
do=$1
shift
case $do in
run)
	mpirun=$(command -v mpirun) || lacks mpirun
	command -v ssh >/dev/null || lacks ssh
	# Over the operator's own, which has mpirun ask about each host key.
	export OMPI_MCA_plm_rsh_args="$ssh" PRTE_MCA_plm_ssh_args="$ssh"
	# A pod that still pulls its image is no reason for mpirun to give up.
	tries=0
	sed 1d "$hosts" | while read -r host _; do
		# shellcheck disable=SC2086 # options, each a word
		until ssh $ssh "$host" true </dev/null 2>"$work/ssh-said"; do
			tries=$((tries + 1))
			[ "$((tries % 30))" != 1 ] || echo "dlwb: waits for $host: $(tail -n 1 "$work/ssh-said")" >&2
			sleep 1
		done
	done
	exec "$mpirun" --hostfile "$hosts" "$@" # a whole path, so that its daemon is looked for beside it
	;;
node)
	(umask 077 && export -p >"$work/mpi-env") || exit 66 # what SSH starts has no variables of the container
	sshd=$(command -v sshd || command -v /usr/sbin/sshd) || lacks sshd
	set -- -D -e -o StrictModes=no
	if [ "$(id -u)" = 0 ]; then
		mkdir -p /run/sshd && chmod 755 /run/sshd
		ls /etc/ssh/ssh_host_*_key >/dev/null 2>&1 || ssh-keygen -A >/dev/null
	elif [ -r "$HOME/.sshd_config" ]; then # as in the images of Kubeflow for other users than root
		set -- "$@" -f "$HOME/.sshd_config"
	fi
	"$sshd" "$@" &
	server=$!
	# The operator ends this pod when mpirun has ended, or is about to.
	# shellcheck disable=SC2317 # called by the trap
	ending() {
		tries=0
		for one in "$work"/rank-*; do
			while [ -e "$one" ] && [ ! -e "$work/exit-${one##*/rank-}" ] && [ "$tries" -lt 200 ]; do
				sleep 0.1
				tries=$((tries + 1))
			done
		done
		kill "$server"
		for one in "$work"/exit-*; do
			[ ! -e "$one" ] || [ "$(cat "$one")" = 0 ] || exit "$(cat "$one")"
		done
		exit 0
	}
	trap ending TERM
	wait "$server"
	;;
rank)
	if [ -z "${DLWB_NODE:-}" ]; then
		# shellcheck source=/dev/null
		. "$work/mpi-env"
	fi
	eval "rank=\$$DLWB_RANK_VAR"
	# shellcheck disable=SC2154 # set by eval
	: >"$work/rank-$rank"
	# Into the log of its own container: mpirun would mix the lines of several ranks.
	if [ -w /proc/1/fd/1 ]; then exec >>/proc/1/fd/1 2>&1; fi
	exec python3 -u "$work/launch.py" --rank "$@"
	;;
esac
