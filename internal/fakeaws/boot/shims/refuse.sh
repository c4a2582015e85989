#!/bin/sh
# What would change the machine that the rig runs on.
echo "${0##*/}: a guest of the rig has no such thing" >&2
exit 1
