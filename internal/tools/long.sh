#!/bin/sh
# long.sh: the tests of which make test runs a sample (internal/sample), whole, each
# package after the other. Without -race: they count and wait, and RACE=1 make test
# looks for races.
#
# long.sh stories: what make test leaves out to be light.
#
# The stories of networks wait for minutes, so the others run beside them. Hundreds of
# hosts on this one machine leave nobody else a processor, and come last.
set -u
cd "$(dirname "$0")/../.." || exit
unset DLWB_LIGHT
marks='sample[.]Of'
if [ "${1:-}" = stories ]; then
    marks='sample[.](Leave|Part)'
else
    export DLWB_LONG=1
fi
beside=./internal/hostsstory last=./internal/manynodes
failed=0

whole() {
    names=$(awk -v marks="${marks}[(]" '/^func / { name = $2; sub(/\(.*/, "", name) } $0 ~ marks { print name }' "$1"/*_test.go | sort -u | paste -sd '|' -)
    echo "$1: $names"
    go test -vet=off -count=1 -timeout 60m -run "^($names)\$" "$1"
}

said=$(mktemp) || exit
trap 'rm -f "$said"' EXIT
whole $beside >"$said" 2>&1 &
waits=$!
for dir in $(grep -rlE --include='*_test.go' "${marks}[(]" . | xargs -n 1 dirname | sort -u); do
    case $dir in "$beside" | "$last") continue ;; esac
    whole "$dir" || failed=1
done
wait "$waits" || failed=1
cat "$said"
whole $last || failed=1
exit $failed
