#!/bin/sh
# need_rig.sh podman|slurm|arm64: makes sure that what one of the larger rigs of the
# tests needs is there: installs it where this is root on Debian or Ubuntu, elsewhere
# says what is missing.
set -eu
rig=${1-}
case $rig in
podman) programs='podman runc busybox' packages='podman runc busybox' ;;
slurm) programs='slurmctld slurmd srun munged' packages='slurm-wlm munge' ;;
arm64) programs=qemu-aarch64-static packages=qemu-user-static ;;
*)
    echo "need_rig.sh podman|slurm|arm64" >&2
    exit 2
    ;;
esac
missing=
for program in $programs; do
    command -v "$program" >/dev/null 2>&1 || missing="$missing $program"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing for the tests: $packages"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -q >/dev/null
    # shellcheck disable=SC2086 # a list of names
    apt-get install -qq -y --no-install-recommends $packages >/dev/null
    exit 0
fi
echo "the tests need what is missing here:$missing" >&2
echo "on Debian or Ubuntu: sudo apt-get install $packages" >&2
exit 1
