#!/bin/sh
# What is checked besides the tests: form, vet, staticcheck, govulncheck and the
# shell scripts. What can't run here says so; nothing is passed over silently.
# It needs no git, so that it also works in an unpacked archive.
set -eu
staticcheck=$1 govulncheck=$2
# All of these read the whole program, and take a third less time where they may
# take more memory.
GOGC=${GOGC:-400} GOMEMLIMIT=${GOMEMLIMIT:-4GiB}
export GOGC GOMEMLIMIT

unformatted=$(gofmt -l .)
if [ -n "$unformatted" ]; then
    echo "gofmt would change: $unformatted" >&2
    exit 1
fi
echo "gofmt: clean"
go vet ./...
echo "vet: clean"
for os in darwin windows; do
    go run ./internal/tools/vetfor "$os" . ./cli ./cloud/... ./remote/... ./workbench ./store
    echo "vet for $os: clean"
done
go run "$staticcheck" ./...
echo "staticcheck: clean"

# The list of known faults comes over the network; without it there is nothing to
# compare with. It is asked for the modules first: what is in none of them is called
# by nobody, and the whole program need not be read.
known=
for asked in '-scan module' ./...; do
    # shellcheck disable=SC2086
    if out=$(go run "$govulncheck" $asked 2>&1); then
        known=clean
        break
    elif printf '%s' "$out" | grep -Eq 'dial tcp|no such host|i/o timeout|connection refused|vuln\.go\.dev.* [45][0-9][0-9]'; then
        known="NOT RUN, its database can't be reached: $(printf '%s' "$out" | grep -v '^exit status' | tail -n 1)"
        break
    fi
done
if [ -z "$known" ]; then
    printf '%s\n' "$out" >&2
    exit 1
fi
echo "govulncheck: $known"

if command -v shellcheck >/dev/null 2>&1; then
    # What an older dlwb put on nodes stays as it was; it was checked as a whole then.
    # What others published (testdata/real) is theirs.
    find . -name '*.sh' ! -path '*/testdata/scripts/*' ! -path '*/testdata/real/*' -exec shellcheck -s sh {} +
    shellcheck -s bash .ci/run
    echo "shellcheck: clean"
else
    echo "shellcheck: NOT RUN, it is not installed (apt-get install shellcheck)" >&2
    exit 1
fi
