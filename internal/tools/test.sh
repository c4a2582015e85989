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

# raced N PACKAGE…: tests them with the race detector, N at a time. SQLite, which
# was made from C, and the services of AWS, which were made from their models, do
# nothing at once by themselves: the detector would only make them slow, the one
# to run and the others to compile. The services are not optimized either: without
# inlining they call what is watched, and do not take it in.
raced() {
    most=$1
    shift
    CGO_ENABLED=1 go test -race -vet=off -p "$most" -timeout 30m \
        '-gcflags=modernc.org/sqlite/lib=-race=false' \
        '-gcflags=github.com/aws/aws-sdk-go-v2/service/...=-race=false -N -l' "$@" || failed=1
}

# shellcheck disable=SC2086
raced $((cores + 1)) $others
# shellcheck disable=SC2086
raced 2 $stories
# shellcheck disable=SC2086
raced 1 $alone
# Thousands of random stories, and hundreds of deaths of dlwb as people have it,
# are told without the race detector, compiled as make build does.
GOFLAGS="${GOFLAGS:-} -trimpath" go test -vet=off -p 1 -timeout 30m -run '^(TestCrashMatrix|TestALaunchThatIsRepeatedOrResumedNeverMakesMoreThanAsked|TestNothingThatBelongsToOthersIsEverRemoved)$' \
    ./internal/ec2story ./cloud/ec2 || failed=1
exit $failed
