#!/bin/sh
# Fuzzes every fuzz target of the project, one after the other, for a while.
#
# An input that reaches something new is made shorter before it is kept, for 60
# seconds where nothing else is said. What several goroutines reach is not the same
# twice: all of a minute went into shortening two inputs. So it is tried 20 times.
set -eu
time=$1
export CGO_ENABLED=1
workers=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) # not as many as tests that mostly wait
grep -rl --include='*_test.go' '^func Fuzz' . | sort | while IFS= read -r file; do
    grep -o '^func Fuzz[A-Za-z0-9]*' "$file" | sed 's/^func //' | while IFS= read -r target; do
        echo "== $file $target"
        go test -vet=off -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 20x \
            -parallel "$workers" "./$(dirname "$file")"
    done
done
