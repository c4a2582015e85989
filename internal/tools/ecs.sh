#!/bin/sh
# ecs.sh: tests Ray clusters on ECS with parts that others made, from PyPI in virtual
# environments below the user's cache directory, which stay for the next time: a real
# Ray in the containers, and AWS's model of its services, as botocore has it.
set -eu
cache=${XDG_CACHE_HOME:-$HOME/.cache}/dlwb
ray=${DLWB_RAY:-$cache/frameworks/torch}
if [ ! -x "$ray/bin/ray" ]; then
    ray=$cache/frameworks/ray
    [ -x "$ray/bin/ray" ] || {
        python3 -m venv "$ray"
        "$ray/bin/pip" --quiet --disable-pip-version-check install 'ray[default]==2.60.0' torch numpy
    }
fi
moto=${DLWB_MOTO:-$cache/moto-5.2.5/bin/moto_server}
[ -x "$moto" ] || sh internal/tools/moto.sh
DLWB_KEYS=1 DLWB_ECS_MATRIX=1 DLWB_MOTO=$moto DLWB_RAY=$ray DLWB_BOTOCORE=$(dirname "$moto")/python go test -count=1 -timeout 30m -v ./cloud/ecs ./cloud/rayjobs ./internal/ecsstory
