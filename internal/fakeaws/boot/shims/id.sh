#!/bin/sh
# id: nobody is root on a guest who did not become it by sudo, whoever runs
# the rig.
# shellcheck source=common.sh
. "${0%/*}/common"
me=$user
[ -z "${DLWB_RIG_ROOT-}" ] || me=root
for last; do :; done
case ${last-} in
"$user" | root) me=$last ;;
-*) ;;
?*) echo "id: '$last': no such user" >&2; exit 1 ;;
esac
number=1000
[ "$me" != root ] || number=0
case ${1-} in
-un | -gn) echo "$me" ;;
-u | -g) echo "$number" ;;
*) echo "uid=$number($me) gid=$number($me) groups=$number($me)" ;;
esac
