#!/bin/sh
# wall TEXT: nobody is bothered; it stands in the guest's console.
# shellcheck source=common.sh
. "${0%/*}/common"
if [ $# -eq 0 ]; then set -- "$(cat)"; fi
echo "wall: $*" >>"$guest/console"
