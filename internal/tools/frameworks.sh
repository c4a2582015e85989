#!/bin/sh
# frameworks.sh [FLAG…]: runs every engine with its real framework, on nodes of this
# machine. The frameworks come from PyPI, by the exact versions in
# internal/frameworks/pins, into environments below the user's cache directory, where
# they stay for the next time. Flags are those of internal/frameworks: -engines a,b
# tries these alone, -slice each engine once, -write puts what ran into the docs.
set -eu
venvs=${XDG_CACHE_HOME:-$HOME/.cache}/dlwb/frameworks
mkdir -p "$venvs"
for pins in internal/frameworks/pins/*.txt; do
    name=$(basename "$pins" .txt)
    venv=$venvs/$name
    if cmp -s "$pins" "$venv/pins.txt"; then
        continue
    fi
    echo "making $venv: minutes, and gigabytes for PyTorch" >&2
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" --quiet --disable-pip-version-check --no-input install -r "$pins"
    cp "$pins" "$venv/pins.txt"
done
if ! command -v mpirun >/dev/null; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get install -y -q openmpi-bin >/dev/null
    else
        echo "engine mpi needs Open MPI: install openmpi-bin" >&2
    fi
fi
# JupyterLab and TensorBoard of PyPI behind the door, and the launcher of the newest PyTorch.
DLWB_TEST_FRAMEWORKS=$venvs/torch/bin/python go test -count=1 -v -run 'OfTheEnvironment' ./cli
DLWB_TEST_PYTHON=$venvs/torch/bin/python go test -count=1 -v -run 'Ranks|ExitCode' ./remote/engine
exec go test -count=1 -v -timeout 3h -run 'Frameworks' ./internal/frameworks -venvs "$venvs" "$@"
