#!/bin/sh
# moto.sh: runs the tests that need moto with each of its versions in MOTO, and those of
# ministack and LocalEmu, which others made; each in a venv of its own below the user's cache
# directory, which stays for the next time. They lack different things, and dlwb has to
# bear all of them.
set -eu
failed=0
for version in ${MOTO:-5.2.5 4.2.14}; do
    venv=${XDG_CACHE_HOME:-$HOME/.cache}/dlwb/moto-$version
    if ! "$venv/bin/moto_server" --help >/dev/null 2>&1; then
        rm -rf "$venv"
        python3 -m venv "$venv"
        "$venv/bin/pip" --quiet --disable-pip-version-check install "moto[ec2,s3,server,ssm]==$version"
    fi
    echo "moto $version"
    DLWB_MOTO="$venv/bin/moto_server" go test -count=1 -v -timeout 30m -run Moto ./cloud/ec2 ./cloud/objects ./internal/motostory || failed=1
done
version=${MINISTACK:-1.5.33}
venv=${XDG_CACHE_HOME:-$HOME/.cache}/dlwb/ministack-$version
if ! [ -x "$venv/bin/ministack" ]; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" --quiet --disable-pip-version-check install "ministack==$version"
fi
echo "ministack $version"
DLWB_MINISTACK="$venv/bin/ministack" go test -count=1 -v -timeout 10m -run Ministack ./internal/motostory || failed=1
version=${LOCALEMU:-1.3.2}
venv=${XDG_CACHE_HOME:-$HOME/.cache}/dlwb/localemu-$version
# It takes Python 3.12 or a newer one, which may be installed beside an older python3.
python=$(for python in python3 python3.14 python3.13 python3.12 "$HOME"/.pyenv/versions/3.1[2-9].*/bin/python3; do
    if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null; then
        echo "$python"
        break
    fi
done)
if [ -z "$python" ]; then
    echo "LocalEmu $version: NOT RUN, there is no Python 3.12"
    exit $failed
fi
if ! [ -x "$venv/bin/localemu" ]; then
    rm -rf "$venv"
    "$python" -m venv "$venv"
    "$venv/bin/pip" --quiet --disable-pip-version-check install "localemu==$version"
fi
echo "LocalEmu $version"
DLWB_LOCALEMU="$venv/bin/localemu" go test -count=1 -v -timeout 10m -run LocalEmu ./internal/motostory || failed=1
exit $failed
