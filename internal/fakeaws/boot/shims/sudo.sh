#!/bin/sh
# sudo [-n] [-u USER] [NAME=VALUE…] COMMAND…: runs the command as whom the
# guest takes for root. The same program plays "runuser -u USER -- COMMAND…" and
# "su USER -c COMMAND".
# shellcheck source=common.sh
. "${0%/*}/common"
as=root command=
while [ $# -gt 0 ]; do
    case $1 in
    -u | -l) as=$2; shift ;;
    -c) command=$2; shift ;;
    --) shift; break ;;
    -n | -H | -E | -S | -k | -i | -s | - | --login | --preserve-env) ;;
    -*) echo "${0##*/} of the rig: $1 is not known here" >&2; exit 64 ;;
    [A-Za-z_]*=*) export "${1?}" ;;
    "$user" | root)
        # su names whom it plays without an option.
        [ "${0##*/}" != sudo ] || break
        as=$1
        ;;
    *) break ;;
    esac
    shift
done
if [ -n "$command" ]; then
    set -- sh -c "$command" "$@"
fi
case $as in
root) HOME=$root DLWB_RIG_ROOT=1 ;;
"$user") HOME=$node/home DLWB_RIG_ROOT='' ;;
*) echo "${0##*/} of the rig: there is no user $as" >&2; exit 1 ;;
esac
USER=$as LOGNAME=$as
export HOME USER LOGNAME DLWB_RIG_ROOT
exec "$@"
