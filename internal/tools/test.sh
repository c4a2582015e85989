#!/bin/sh
# test.sh: every test, in the order in which they disturb each other least. All
# parts run, also after one has failed.
#
# The stories start processes and look at how long things take. Those of cli run
# several at a time by themselves, and chaos wants to hear the clock tick; the
# others go two packages at a time. What is no story mostly waits: one package
# more than there are cores runs at a time.
#
# vet is a matter of make check, which asks more of it.
set -u
cd "$(dirname "$0")/../.." || exit

alone='./cli ./internal/chaos'
stories='./remote ./internal/ec2story ./cloud/ec2 ./examples'
module=$(go list -m)
others=$(for package in $(go list ./...); do
    case " $alone $stories " in
    *" .${package#"$module"} "*) ;;
    *) echo "$package" ;;
    esac
done)
# dlwb is started thousands of times, and with the race detector each of them
# would sleep for a second before it ends.
export GORACE="atexit_sleep_ms=20 ${GORACE:-}"
# What pyenv and asdf have on the PATH are scripts, and another six processes before
# Python begins. It is begun hundreds of times: from where it really is, then.
if python=$(python3 -c 'import sys; print(sys.executable)' 2>/dev/null) && script=$(command -v python3) && [ -n "$python" ]; then
    PATH=$(printf '%s\n' ":$PATH:" | sed "s|:${script%/*}:|:${python%/*}:|g; s/^://; s/:\$//")
fi
cores=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
failed=0

# raced N PACKAGE…: tests them with the race detector, N at a time. SQLite, which
# was made from C, and the services of AWS, which were made from their models, do
# nothing at once by themselves: the detector would only make them slow, the one
# to run and the others to compile. The services are not optimized either: without
# inlining they call what is watched, and do not take it in. The flags are in the
# environment, so that a dlwb that a test builds is made of the same parts.
raced() {
    most=$1
    shift
    CGO_ENABLED=1 GOFLAGS="${GOFLAGS:-} -race '-gcflags=modernc.org/sqlite/lib=-race=false' \
        '-gcflags=github.com/aws/aws-sdk-go-v2/service/...=-race=false -N -l'" \
        go test -vet=off -p "$most" -timeout 30m "$@" || failed=1
}

# shellcheck disable=SC2086
raced $((cores + 1)) $others
# shellcheck disable=SC2086
raced 2 $stories
# shellcheck disable=SC2086
raced 1 $alone
# Thousands of random stories, hundreds of deaths of dlwb as people have it, and a
# log that is read by one goroutine alone, are told without the race detector, and
# compiled as make build does.
go test -vet=off -p 1 -timeout 30m -run '^(TestCrashMatrix|TestALaunchThatIsRepeatedOrResumedNeverMakesMoreThanAsked|TestNothingThatBelongsToOthersIsEverRemoved|TestMemoryDoesNotGrowWithTheLog)$' \
    ./internal/ec2story ./cloud/ec2 ./metrics || failed=1
exit $failed
