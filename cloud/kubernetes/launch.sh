#!/bin/sh
# Starts what dlwb runs in this pod, as its first process: it unpacks the code,
# passes TERM on, and exits as the training did. Programs that are the first
# process themselves do not hear TERM. As "ray" it starts Ray in place of the training,
# and as "driver" the training in a pod where it has done that.
given=/dlwb/given work=/dlwb/work part=${1:-} with=launch.py
note() { printf '%s\n' "$1" >/dev/termination-log 2>/dev/null; }
give_up() {
	echo "dlwb: $1" >&2
	note "launcher: $1"
	exit 125
}
node=$((DLWB_INDEX + DLWB_FIRST))
export DLWB_NODE="$node"
# A container that is started again would train twice under one id.
[ "$part" = ray ] || [ ! -e "$work/begun$part" ] || give_up "this container was started again, and a run has one attempt"
: >"$work/begun$part" || give_up "$work can't be written"
if [ "$part" = driver ]; then
	echo $$ >"$work/driver.pid"
	export DLWB_TEXT=yes # Ray's logs are text
elif command -v tar >/dev/null 2>&1 && command -v gzip >/dev/null 2>&1; then
	gzip -dc "$given/payload.tar.gz" | tar -xf - -C "$work" || give_up "the code can't be unpacked into $work"
elif command -v python3 >/dev/null 2>&1; then
	python3 -m tarfile -e "$given/payload.tar.gz" "$work" || give_up "the code can't be unpacked into $work"
else
	give_up "the image has neither tar and gzip nor python3: the code can't be unpacked"
fi
cd "${DLWB_WORKDIR:-$work/code}" 2>/dev/null || { [ -z "${DLWB_WORKDIR:-}" ] && mkdir -p "$work/code" && cd "$work/code"; } ||
	give_up "there is no directory ${DLWB_WORKDIR:-} in the image or on its volumes (machines.workdir)"
if [ "$part" = ray ]; then
	unset DLWB_NODE
	export DLWB_RESULTS="$work/.dlwb-node"
	mkdir -p "$DLWB_RESULTS"
	[ "${DLWB_HOLD:-0}" -le 0 ] || sh "$work/keep.sh" note 1 "$PWD"
	# shellcheck source=/dev/null
	. "$work/ray.sh"
fi
[ -r "$work/node/$node.sh" ] || give_up "this is replica $node, and the job has fewer"
# shellcheck source=/dev/null
. "$work/node/$node.sh"
if [ "${several:-}" = yes ]; then
	command -v python3 >/dev/null 2>&1 || give_up "several ranks in a pod need python3 in the image"
	set -- python3 -u "$work/$with" "$work/node/$node.json"
fi
command -v "$1" >/dev/null 2>&1 || give_up "there is no $1 in the image"
export DLWB_RESULTS="$work/.dlwb-node"
mkdir -p "$DLWB_RESULTS"
# What is there now, and stays as it is, is no result.
[ "${DLWB_HOLD:-0}" -le 0 ] || sh "$work/keep.sh" note "$node" "$PWD"
termed=
"$@" &
child=$!
# Kubeflow's operator ends the workers at the moment when the master has ended well,
# in the middle of their own last lines: a worker gets a moment first.
# shellcheck disable=SC2317 # called by the trap
ending() {
	termed=${termed:-$(date +%s)}
	tries=0
	while [ "$DLWB_FIRST" = 1 ] && [ "$tries" -lt 20 ] && running; do
		sleep 0.1
		tries=$((tries + 1))
	done
	kill -TERM "$child" 2>/dev/null
}
# shellcheck disable=SC2317 # called by ending
running() { # and no zombie
	[ -e "/proc/$child/stat" ] && ! grep -q '^[0-9]* (.*) Z' "/proc/$child/stat" 2>/dev/null
}
trap ending TERM INT HUP
# The lease, where no controller holds it: Kubeflow's operator looks at its deadline
# only when something changes.
if [ "${DLWB_DEADLINE:-0}" -gt 0 ] && [ "$part" != driver ]; then
	ends=$(($(date +%s) + DLWB_DEADLINE))
	(
		sleep "$DLWB_DEADLINE"
		note "launcher: deadline"
		: >"$work/late"
		kill -TERM "$child"
		sleep 30
		kill -KILL "$child"
	) 2>/dev/null &
	lease=$!
fi
# What the run wrote goes with the pod: the container stays until dlwb has it, and not
# for longer than DLWB_HOLD seconds, nor past its deadline. A pod that is being ended has
# its grace for that, and so has one at its deadline.
hold() {
	[ "$part" = driver ] || wrote || return 0
	[ -z "${lease:-}" ] || kill "$lease" 2>/dev/null
	[ ! -e "$work/late" ] || termed=${termed:-$(date +%s)}
	trap 'termed=${termed:-$(date +%s)}' TERM INT HUP
	printf '%s\n' "$code" >"$work/ended.tmp" && mv "$work/ended.tmp" "$work/ended" || return 0
	wrote || return 0 # the workers of Ray may have
	limit=$(($(date +%s) + DLWB_HOLD))
	[ -z "${ends:-}" ] || [ "$limit" -le "$((ends + DLWB_GRACE))" ] || limit=$((ends + DLWB_GRACE))
	while [ ! -e "$work/brought" ]; do
		[ -z "$termed" ] || [ "$limit" -le "$((termed + DLWB_GRACE))" ] || limit=$((termed + DLWB_GRACE))
		if [ "$(date +%s)" -ge "$limit" ]; then
			printf '%s\n' "launcher: not brought home" >>/dev/termination-log 2>/dev/null
			return 0
		fi
		sleep 0.2
	done
}
wrote() {
	[ -z "$(ls -A "$DLWB_RESULTS" 2>/dev/null)" ] || return 0
	[ "$node" = 0 ] || return 1
	while IFS= read -r path; do
		[ ! -e "$path" ] || return 0
	done <"$work/keep"
	return 1
}
while :; do
	wait "$child"
	code=$?
	kill -0 "$child" 2>/dev/null || break
done
[ "${DLWB_HOLD:-0}" -le 0 ] || hold
exit "$code"
