#!/bin/sh
# Makes sure that what `make bench-nodes` measures dlwb against is there:
# installs it where this is root on Debian or Ubuntu, elsewhere says what is
# missing. It never fails: the bench says of each figure that it could not take.
set -eu

needs='command -v ansible-playbook : ansible-core
/usr/bin/python3 -c "import fabric" : python3-fabric
command -v pdsh : pdsh
command -v rsync : rsync
command -v ssh : openssh-client
test -x /usr/sbin/sshd : openssh-server
/usr/bin/python3 -c "import ensurepip, venv" : python3-venv
/usr/bin/python3 -c "import numpy" : python3-numpy
/usr/bin/python3 -c "import yaml" : python3-yaml
/usr/bin/python3 -c "import setuptools" : python3-setuptools
test -d /usr/lib/python3/dist-packages/torch : python3-torch
command -v ip : iproute2
command -v iptables-legacy : iptables
command -v bc : bc
command -v ps : procps'

missing=$(printf '%s\n' "$needs" | while IFS= read -r line; do
    sh -c "${line% : *}" >/dev/null 2>&1 || printf '%s ' "${line##* : }"
done)
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing for the bench: $missing" >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -q >/dev/null
    for package in $missing; do
        apt-get install -qq -y --no-install-recommends "$package" >/dev/null ||
            echo "could not install $package: what it measures is told as not run" >&2
    done
    exit 0
fi
echo "missing here, so not measured against: $missing" >&2
echo "on Debian or Ubuntu: sudo apt-get install $missing" >&2
