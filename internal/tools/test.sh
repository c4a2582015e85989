#!/bin/sh
# test.sh: every test, in the order in which they disturb each other least. All
# parts run, also after one has failed.
#
# What is no story mostly waits: more packages than there are cores run at a time,
# first those that wait the longest. The stories start processes and look at how long
# things take: fewer of them, the longest first: begun last, cli's went on alone for
# minutes. Those of chaos run several at a time by themselves, and what only computes
# runs beside the stories. The race detector makes work of what waits without it:
# under it fewer go at a time.
#
# vet is a matter of make check, which asks more of it.
#
# With RACE=1, as .ci/run asks, the race detector watches.
#
# Where nobody asks for more, stories that take long are left to make test-stories
# (internal/sample).
#
# With TIMES=N each test runs N times, and four times as many packages run at once: a
# test that fails once in fifty runs, or only on a busy machine, is found so.
set -u
cd "$(dirname "$0")/../.." || exit

longest='./internal/hostsstory ./internal/ecsstory ./internal/sagemakerstory ./workbench ./remote/environment ./cloud/hosts ./internal/fakeaws/boot ./cloud/ec2/userdata'
stories='./cli ./internal/ec2story ./remote ./remote/transfer ./cloud/ec2 ./examples'
module=$(go list -m)
others=$(for package in $(go list ./...); do
    case " ./internal/chaos $stories " in
    *" .${package#"$module"} "*) ;;
    *) echo "$package" ;;
    esac
done)
RACE=${RACE:-}
[ -n "$RACE${TIMES:-}" ] || export DLWB_LIGHT=1
# dlwb is started thousands of times, and with the race detector each of them
# would sleep for a second before it ends.
export GORACE="atexit_sleep_ms=20 ${GORACE:-}"
# What pyenv and asdf have on the PATH are scripts, and another six processes before
# Python begins. It is begun hundreds of times: the one behind them does, or, where
# there is none, the one that they lead to.
if script=$(command -v python3) && [ "$(head -c 2 "$script")" = '#!' ]; then
    behind=$(printf '%s\n' ":$PATH:" | sed "s|:${script%/*}:|:|g; s/^://; s/:\$//")
    if (PATH=$behind && command -v python3) >/dev/null; then
        PATH=$behind
    elif python=$(python3 -c 'import sys; print(sys.executable)' 2>/dev/null) && [ -n "$python" ]; then
        PATH=${python%/*}:$behind
    fi
fi
cores=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
wide=$((2 * cores)) several=3 crowd=1 again=''
[ -z "$RACE" ] || { wide=$((cores + 1)) && several=2; }
[ -z "${TIMES:-}" ] || crowd=4 again="-count=$TIMES -timeout=6h"
failed=0

dir='' said='' beside=''
trap '
    [ -z "$beside" ] || kill -- "-$beside" 2>/dev/null || kill "$beside" 2>/dev/null
    rm -rf "$dir" "$said"
' EXIT
trap 'exit 130' INT TERM HUP

# The tests make and remove some hundred thousand small files, which live a second
# or two. Where there is memory for them, they live there; some of the tests are
# another user, so it is as open as /tmp.
memory=/dev/shm
roomy() { # in KB: what the tests take at once is a tenth of it
    [ "$(df -Pk $memory | awk 'NR == 2 { print $4 }')" -ge 6291456 ] &&
        [ "$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo)" -ge 12582912 ]
}
if [ -z "${TMPDIR:-}" ] && roomy 2>/dev/null && dir=$(mktemp -d $memory/dlwb.XXXXXX); then
    if cp "$(command -v env)" "$dir" && "$dir/env" >/dev/null; then # it may be mounted noexec
        chmod 1777 "$dir"
        export TMPDIR="$dir"
    fi
fi
said=$(mktemp) || exit

# The compiler takes a fifth less time where it may take twice the memory. That is
# its own matter: what is tested has what everybody has.
GOGC=${GOGC:-400} GOMEMLIMIT=${GOMEMLIMIT:-4GiB}
export GOGC GOMEMLIMIT
usual='env -u GOGC -u GOMEMLIMIT'
# shellcheck disable=SC2086
tests() { go test -vet=off -exec "$usual" -timeout 30m $again "$@" || failed=1; }

# packages N PACKAGE…: tests them, N at a time. The race detector, where it is asked
# for, does not watch what computes by itself and does nothing at once: SQLite, which
# was made from C, the services of AWS, which were made from their models, and the
# cipher of a key's passphrase. They would only be slow, to run or to compile. The services are
# not optimized either: without inlining they call what is watched, and do not take
# it in. (encoding/xml must be watched: it shares instances of generic functions with
# others, and what orders their memory would go unseen.) The flags are in the
# environment, so that a dlwb that a test builds is made of the same parts.
packages() {
    most=$1
    shift
    (
        if [ -n "$RACE" ]; then
            export CGO_ENABLED=1 GOFLAGS="${GOFLAGS:-} -race '-gcflags=modernc.org/sqlite/lib=-race=false -dwarf=false' \
                '-gcflags=golang.org/x/crypto/blowfish=-race=false -dwarf=false' \
                '-gcflags=github.com/aws/aws-sdk-go-v2/service/...=-race=false -N -l -dwarf=false'"
        fi
        tests -p $((most * crowd)) "$@"
        exit $failed
    ) || failed=1
}

left() { grep -rh --include='*_test.go' "sample\.$1(" . | wc -l; }

# shellcheck disable=SC2086
packages $wide $longest $others

packages 1 ./internal/chaos

# Under the race detector some packages leave out what it would only make slow:
# thousands of random stories, a log that is read by one goroutine alone, thousands of
# frames that are drawn one after the other. These are told without it, and random
# stories of money and of the lease, of which make test plays a part, are told whole.
if [ -n "$RACE" ]; then
    # shellcheck disable=SC2086
    sh internal/tools/beside.sh env DLWB_LONG=1 go test -vet=off -exec "$usual" -timeout 30m $again \
        -run '^(TestALaunchThatIsRepeatedOrResumedNeverMakesMoreThanAsked|TestNothingThatBelongsToOthersIsEverRemoved|TestTheLeaseEndsEveryMachineInTimeAndNoRunBeforeIt|TestMemoryDoesNotGrowWithTheLog|TestAPointTakesAtMost32BytesOfResidentMemory|TestScenesLookAsTheyDid|TestNothingHostileLeavesAnyScreen|TestEverySizeSurvives|TestEverySmallSizeSurvives|TestEverySceneCanBeDrawnInASCII)$' \
        ./cloud/ec2 ./cloud/ec2/userdata ./metrics ./ui >"$said" 2>&1 &
    beside=$!
fi

# shellcheck disable=SC2086
packages $several $stories
# So are hundreds of deaths of dlwb as people have it, what it takes to store a flood,
# and a log of millions of lines.
if [ -n "$RACE" ]; then
    tests -p $((2 * crowd)) -run '^(TestCrashMatrix|TestDlwbMayBeKilledAtAnyMoment|TestAFloodOfOutputIsStoredWholeInLittleMemory|TestALogLongerThanWhatIsKeptTellsItsExtremes)$' \
        ./internal/ec2story ./cli
    wait "$beside" || failed=1
    beside=
    cat "$said"
fi
if [ -n "${DLWB_LIGHT:-}" ]; then
    echo "NOT RUN, to be light: $(left 'Leave') stories, and of $(left 'Part') matrices a part; make test-stories runs them, and so does RACE=1 make test"
fi
exit $failed
