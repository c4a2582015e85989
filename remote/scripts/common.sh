#!/bin/sh
# common: what peer and telemetry share. They read it with
# ".", nobody runs it. It defines functions and leaves nothing behind.

# paths RUN_ID: sets $id and $run. An id is a plain file name, nothing else.
paths() {
    case $1 in
    '' | .* | -* | *[!A-Za-z0-9._-]*)
        echo "dlwb: \"$1\" is not a run id" >&2
        exit 64
        ;;
    esac
    id=$1
    # shellcheck disable=SC2034
    run=$HOME/.dlwb/runs/$id
}

# nap: a tenth of a second, or a second where sleep takes no fractions.
nap() {
    sleep 0.1 2>/dev/null || sleep 1
}

# clock: sets $now in hundredths of a second. It runs on while the time of day
# is being set.
clock() {
    if { read -r now _ </proc/uptime; } 2>/dev/null; then
        now=${now%.*}${now#*.}
    else
        now=$(date +%s)00
    fi
}
