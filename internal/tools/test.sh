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
cores=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
failed=0

# shellcheck disable=SC2086
CGO_ENABLED=1 go test -race -vet=off -p $((cores + 1)) -timeout 30m $others || failed=1
# shellcheck disable=SC2086
CGO_ENABLED=1 go test -race -vet=off -p 2 -timeout 30m $stories || failed=1
# shellcheck disable=SC2086
CGO_ENABLED=1 go test -race -vet=off -p 1 -timeout 30m $alone || failed=1
# Thousands of random stories, and hundreds of deaths of dlwb as people have it,
# are told without the race detector, compiled as make build does.
GOFLAGS="${GOFLAGS:-} -trimpath" go test -vet=off -p 1 -timeout 30m -run '^(TestCrashMatrix|TestALaunchThatIsRepeatedOrResumedNeverMakesMoreThanAsked|TestNothingThatBelongsToOthersIsEverRemoved)$' \
    ./internal/ec2story ./cloud/ec2 || failed=1
exit $failed
