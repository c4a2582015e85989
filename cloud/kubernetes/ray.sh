#!/bin/sh
# Ray in a pod of a RayCluster, as the first process: read by launch.sh, in the
# directory of the code, which is that of Ray's workers. What is to be started KubeRay
# says, in a variable. When the pod is ended, the driver hears of it first.
work=${work:-/dlwb/work}
command -v ray >/dev/null 2>&1 || give_up "there is no ray in the image: machines.image is one with Ray, such as rayproject/ray"
[ -n "${KUBERAY_GEN_RAY_START_CMD:-}" ] || give_up "KubeRay does not say how Ray is to be started: its operator is older than 1.0"
# shellcheck disable=SC3045 # where a shell does not know it, it is not raised
ulimit -n 65536 2>/dev/null
sh -c "exec $KUBERAY_GEN_RAY_START_CMD" & # one command, which is to hear TERM itself
child=$!
# shellcheck disable=SC2317 # called by the trap
ending() {
	tries=0
	if driver=$(cat "$work/driver.pid" 2>/dev/null) && kill -TERM "$driver" 2>/dev/null; then
		while kill -0 "$driver" 2>/dev/null && [ "$tries" -lt "$((${DLWB_GRACE:-20} * 5))" ]; do
			sleep 0.2
			tries=$((tries + 1))
		done
	fi
	kill -TERM "$child" 2>/dev/null
	sleep 1
	[ ! -e "$work/late" ] || exit 0
	exit 143
}
trap ending TERM INT HUP
# The lease, where no operator holds it any more: a container that ends well is not
# started again.
if [ "${DLWB_DEADLINE:-0}" -gt 0 ]; then
	(
		sleep "$DLWB_DEADLINE"
		note "launcher: deadline"
		: >"$work/late"
		kill -TERM $$
	) 2>/dev/null &
fi
while :; do
	wait "$child"
	code=$?
	kill -0 "$child" 2>/dev/null || exit "$code"
done
