#!/bin/sh
# moto.sh: runs the tests of cloud/ec2 that need moto, in a venv of its own below the
# user's cache directory, which stays for the next time.
set -eu
version=5.2.5
venv=${XDG_CACHE_HOME:-$HOME/.cache}/dlwb/moto-$version
if ! "$venv/bin/moto_server" --help >/dev/null 2>&1; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" --quiet --disable-pip-version-check install "moto[ec2,s3,server,ssm]==$version"
fi
DLWB_MOTO="$venv/bin/moto_server" go test -count=1 -v -run Moto ./cloud/ec2 ./cloud/objects
