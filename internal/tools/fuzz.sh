#!/bin/sh
# Fuzzes every fuzz target of the project, one after the other, for a while.
set -eu
time=$1
export CGO_ENABLED=1
grep -rl --include='*_test.go' '^func Fuzz' . | sort | while IFS= read -r file; do
    grep -o '^func Fuzz[A-Za-z0-9]*' "$file" | sed 's/^func //' | while IFS= read -r target; do
        echo "== $file $target"
        go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "./$(dirname "$file")"
    done
done
