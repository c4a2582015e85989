#!/bin/sh
# getent passwd USER: a guest has two users. All else is the machine's.
# shellcheck source=common.sh
. "${0%/*}/common"
case "$*" in
"passwd root" | "passwd 0") echo "root:x:0:0:root:$root:/bin/sh" ;;
"passwd $user" | "passwd 1000") echo "$user:x:1000:1000::$node/home:/bin/sh" ;;
passwd)
    echo "root:x:0:0:root:$root:/bin/sh"
    [ "$user" = root ] || echo "$user:x:1000:1000::$node/home:/bin/sh"
    ;;
"passwd "*) exit 2 ;;
*)
    PATH=${PATH#"$node/bin:"}
    exec getent "$@"
    ;;
esac
