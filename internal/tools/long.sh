#!/bin/sh
# long.sh: the tests of which make test runs a sample (internal/sample), whole, each
# package after the other. Without -race: they count and wait, and make test looks
# for races.
set -u
cd "$(dirname "$0")/../.." || exit
export DLWB_LONG=1
failed=0
for dir in $(grep -rl --include='*_test.go' 'sample\.Of(' . | xargs -n 1 dirname | sort -u); do
    names=$(awk '/^func / { name = $2; sub(/\(.*/, "", name) } /sample\.Of\(/ { print name }' "$dir"/*_test.go | sort -u | paste -sd '|' -)
    echo "$dir: $names"
    go test -vet=off -count=1 -timeout 60m -run "^($names)\$" "$dir" || failed=1
done
exit $failed
