#!/bin/sh
# rotate prepare|activate: gives this machine a host key that never leaves it,
# for the one that came by user-data, which others may read.
#
# Called by dlwb as root: prepare makes the key, unless that is done, and
# prints its public half; activate puts it in its place, removes all other host
# keys and restarts sshd. Open connections stay. Both may be called again.
# Leaves /etc/ssh/ssh_host_ed25519_key and the note /var/lib/dlwb/rotated.
next=/etc/ssh/dlwb_next_ed25519_key
host=/etc/ssh/ssh_host_ed25519_key
note=/var/lib/dlwb/rotated
umask 077

fatal() {
    echo "dlwb rotate: $*" >&2
    exit 74
}

# prepare: the public half comes into its place last, and says that all is done.
prepare() {
    if [ ! -s "$next.pub" ] || [ ! -s "$next" ]; then
        rm -f "$next" "$next.pub" "$next.new" "$next.new.pub"
        ssh-keygen -q -t ed25519 -N '' -C dlwb -f "$next.new" </dev/null >&2 || fatal "ssh-keygen has made no key"
        if ! mv -f "$next.new" "$next" || ! mv -f "$next.new.pub" "$next.pub"; then fatal "can't write $next"; fi
    fi
    cat "$next.pub"
}

# activate: the private half goes first, so that a public half without it is
# one that is half-way.
activate() {
    if [ -s "$next.pub" ]; then
        [ ! -s "$next" ] || mv -f "$next" "$host" || fatal "can't write $host"
        if ! chmod 644 "$next.pub" || ! mv -f "$next.pub" "$host.pub"; then fatal "can't write $host.pub"; fi
        true >"$note"
    elif [ ! -e "$note" ]; then
        fatal "there is no key to activate: prepare was not called"
    fi
    for key in /etc/ssh/ssh_host_*_key /etc/ssh/ssh_host_*_key.pub /etc/ssh/ssh_host_*_key-cert.pub; do
        case $key in "$host" | "$host.pub") ;; *) rm -f "$key" ;; esac
    done
    ! command -v restorecon >/dev/null || restorecon "$host" "$host.pub"
    systemctl restart ssh 2>/dev/null || systemctl restart sshd 2>/dev/null || service ssh restart >&2 ||
        fatal "can't restart sshd"
}

case ${1-} in
prepare | activate) "$1" ;;
*)
    echo "usage: rotate prepare|activate" >&2
    exit 64
    ;;
esac
