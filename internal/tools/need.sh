#!/bin/sh
# need.sh [podman|slurm|kubernetes|arm64|frameworks]: makes sure that what the tests need, or one of their
# larger rigs, is there: installs it where this is root on Debian or Ubuntu,
# elsewhere says what is missing. Leaves nothing else.
set -eu

# Each line: how to see that it is there, then the package that brings it.
needs='command -v sshd || test -x /usr/sbin/sshd : openssh-server
command -v ssh : openssh-client
command -v gcc : gcc
command -v git : git
command -v python3 : python3
test -x /usr/bin/python3 && /usr/bin/python3 -c "import torch" : python3-torch
test -x /usr/bin/python3 && /usr/bin/python3 -c "import ensurepip" : python3-venv
command -v jupyter-notebook : jupyter-notebook
command -v shellcheck : shellcheck
command -v busybox : busybox
command -v dash : dash
command -v curl : curl
command -v wget : wget
command -v ip : iproute2
command -v iptables-legacy : iptables
command -v bc : bc
command -v ps : procps
command -v tmux : tmux
command -v zsh : zsh
command -v fish : fish
command -v tcsh : tcsh
command -v podman : podman
command -v runc : runc
test -r /usr/share/modules/init/sh || test -r /usr/share/lmod/lmod/init/sh : environment-modules'

case ${1-} in
'') ;;
podman) needs=$(printf '%s\n' "$needs" | grep -E ' : (podman|runc|busybox)$') ;;
slurm) needs='command -v slurmctld && command -v slurmd && command -v srun : slurm-wlm
command -v slurmdbd : slurmdbd
command -v mariadbd : mariadb-server
command -v munged : munge
command -v curl : curl
command -v tmux : tmux
test -x /usr/bin/python3 && /usr/bin/python3 -c "import torch" : python3-torch' ;;
kubernetes) needs='command -v ip : iproute2
command -v unshare && command -v nsenter : util-linux
test -x /usr/bin/python3 && /usr/bin/python3 -c "import torch" : python3-torch' ;;
frameworks) needs='command -v mpirun : openmpi-bin
command -v mpicxx : libopenmpi-dev
command -v cmake : cmake
command -v g++ : g++
command -v make : make
ls /usr/include/python3*/Python.h : python3-dev
test -x /usr/bin/python3 && /usr/bin/python3 -c "import torch" : python3-torch
test -e /usr/include/torch/extension.h : libtorch-dev
test -e /usr/include/pybind11/pybind11.h : pybind11-dev
test -x /usr/bin/python3 && /usr/bin/python3 -c "import ensurepip" : python3-venv' ;;
arm64) needs='command -v qemu-aarch64-static : qemu-user-static' ;;
*)
    echo "need.sh [podman|slurm|kubernetes|arm64|frameworks]" >&2
    exit 2
    ;;
esac

missing=$(printf '%s\n' "$needs" | while IFS= read -r line; do
    sh -c "${line% : *}" >/dev/null 2>&1 || printf '%s ' "${line##* : }"
done)
# Debian's PyTorch multiplies with the reference BLAS unless there is another one.
# That one is five times as fast; nothing fails without it.
if [ -z "${1-}" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 && ! ldconfig -p 2>/dev/null | grep -q openblas; then
    missing="${missing}libopenblas0-serial "
fi
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing for the tests: $missing"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -q >/dev/null
    # shellcheck disable=SC2086 # a list of names
    apt-get install -qq -y --no-install-recommends $missing >/dev/null
    exit 0
fi
echo "the tests need what is missing here: $missing" >&2
echo "on Debian or Ubuntu: sudo apt-get install $missing" >&2
exit 1
