#!/bin/sh
# frameworks.sh [FLAG…]: runs every engine with its real framework, on nodes of this
# machine. The frameworks come from PyPI, by the exact versions in
# internal/frameworks/pins, into environments below the user's cache directory, where
# they stay for the next time. Flags are those of internal/frameworks: -engines a,b
# tries these alone, -slice each engine once, -write puts what ran into the docs.
set -eu
if ! sh internal/tools/need.sh frameworks; then
    echo "the engines mpi and horovod can't be tried without them" >&2
fi

# into VENV PINS: an environment with what the pins say. Of Horovod there is no wheel:
# its newest release, of 2023, is built against Debian's PyTorch, for the C++14 that both
# are written in, with MPI and with Gloo.
into() {
    case $1 in
    */horovod)
        grep -v '^horovod=' "$2" >"$1.others"
        /usr/bin/python3 -m venv --system-site-packages "$1" &&
            "$1/bin/pip" --quiet --disable-pip-version-check --no-input install -r "$1.others" &&
            env HOROVOD_WITH_PYTORCH=1 HOROVOD_WITHOUT_TENSORFLOW=1 HOROVOD_WITHOUT_MXNET=1 HOROVOD_WITH_MPI=1 HOROVOD_WITH_GLOO=1 \
                MAKEFLAGS="-j$(getconf _NPROCESSORS_ONLN)" "$1/bin/pip" --disable-pip-version-check --no-input install \
                --no-build-isolation --no-deps --no-binary horovod "$(grep '^horovod=' "$2")" >"$1.log" 2>&1
        ;;
    *)
        python3 -m venv "$1" && "$1/bin/pip" --quiet --disable-pip-version-check --no-input install -r "$2"
        ;;
    esac
}

venvs=${XDG_CACHE_HOME:-$HOME/.cache}/dlwb/frameworks
mkdir -p "$venvs"
for pins in internal/frameworks/pins/*.txt; do
    name=$(basename "$pins" .txt)
    venv=$venvs/$name
    if cmp -s "$pins" "$venv/pins.txt"; then
        continue
    fi
    echo "making $venv: minutes; gigabytes for PyTorch; Horovod is built" >&2
    rm -rf "$venv"
    if into "$venv" "$pins"; then
        cp "$pins" "$venv/pins.txt"
    elif [ "$name" = horovod ]; then
        rm -rf "$venv"
        echo "Horovod can't be built here, and is not tried: see $venv.log" >&2
    else
        exit 1
    fi
done
# JupyterLab and TensorBoard of PyPI behind the door, and the launcher of the newest PyTorch.
DLWB_TEST_FRAMEWORKS=$venvs/torch/bin/python go test -count=1 -v -run 'OfTheEnvironment' ./cli
DLWB_TEST_PYTHON=$venvs/torch/bin/python go test -count=1 -v -run 'Ranks|ExitCode' ./remote/engine
exec go test -count=1 -v -timeout 3h -run 'Frameworks' ./internal/frameworks -venvs "$venvs" "$@"
