#!/bin/sh
# sagemaker.sh: tests training jobs with parts that AWS and others made, from PyPI in
# virtual environments below the user's cache directory, which stay for the next time:
# what the official SDK sends now, script mode in the real toolkit, and moto.
set -eu
cache=${XDG_CACHE_HOME:-$HOME/.cache}/dlwb
have() { # NAME PROGRAM PACKAGE...
    venv=$cache/frameworks/$1
    program=$2
    shift 2
    [ -x "$venv/bin/$program" ] && [ "$(cat "$venv/pins" 2>/dev/null)" = "$*" ] && return
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" --quiet --disable-pip-version-check install "$@"
    echo "$*" >"$venv/pins"
}
have sagemaker-sdk python sagemaker==2.257.6
have sagemaker-sdk3 python sagemaker-core==2.27.0 graphene==3.4.3 tblib==3.2.2 nest-asyncio==1.6.0 jinja2==3.1.6
have3=$cache/frameworks/sagemaker-sdk3
"$have3/bin/python" -c 'import importlib.metadata as m; m.version("sagemaker-train")' 2>/dev/null || # without mlflow, which no request needs
    "$have3/bin/pip" --quiet --disable-pip-version-check install --no-deps sagemaker-train==1.27.0
have sagemaker-training train sagemaker-training==5.1.4
sent=$(mktemp -d)
trap 'rm -rf "$sent"' EXIT
"$cache/frameworks/sagemaker-sdk/bin/python" internal/tools/sagemaker_sdk.py "$sent" 2>/dev/null
diff -r cloud/sagemaker/testdata/sdk "$sent"
rm -rf "${sent:?}"/*
"$have3/bin/python" internal/tools/sagemaker_sdk3.py "$sent" 2>/dev/null
diff -r cloud/sagemaker/testdata/sdk3 "$sent"
moto=${DLWB_MOTO:-$cache/moto-5.2.5/bin/moto_server}
[ -x "$moto" ] || { sh internal/tools/moto.sh; }
DLWB_KEYS=1 DLWB_BOTOCORE=$(dirname "$moto")/python DLWB_MOTO=$moto DLWB_SAGEMAKER_TRAINING=$cache/frameworks/sagemaker-training/bin/train \
    go test -count=1 -v ./cloud/sagemaker ./internal/sagemakerstory
