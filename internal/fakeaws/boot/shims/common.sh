#!/bin/sh
# common: what the shims of a guest share; they read it with ".". The file
# "guest" beside it says what this guest is: $instance, $guest (the directory
# that stands for its file system), $node (that of the node that plays it),
# $user (who logs in), $root (root's home) and $power (where the rig listens).
# shellcheck disable=SC2034
instance='' guest='' node='' user='' root='' power=''
# shellcheck source=/dev/null
. "${0%/*}/guest"

# guestpath TEXT: sets $text to it, with the paths of a machine turned into
# those of this guest. What has been turned already stays as it is.
guestpath() {
    text=$1
    swap /var/lib/dlwb "$guest/lib"
    swap /etc/ssh "$guest/ssh"
    swap /etc/systemd/system "$guest/systemd"
}

# swap OLD NEW: in $text.
swap() {
    done=
    while :; do
        case $text in
        *"$1"*) done=$done${text%%"$1"*}$2 text=${text#*"$1"} ;;
        *) break ;;
        esac
    done
    text=$done$text
}
