#!/bin/sh
# watchdog DIR: removes a rig's directory when the rig has been killed, and with
# it all its machines: a node ends when its directory is gone. The rig holds
# this one's input open for as long as it lives.
trap '' HUP INT TERM
read -r _
set --
for intent in "$0"/nodes/*/intent.json; do
    id=$(sed -n 's/.*"id": "\([0-9a-f]\{12\}\).*/\1/p' "$intent")
    set -- "$@" "${TMPDIR:-/tmp}/dlwb-${id:-none}-0"
done
for _ in 1 2 3 4 5 6 7; do
    rm -rf "$0"/nodes "$@"
    sleep 1
done
rm -rf "$0"
