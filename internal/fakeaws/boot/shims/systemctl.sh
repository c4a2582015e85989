#!/bin/sh
# systemctl VERB UNIT…: as much of it as a small service and sshd need. A unit
# runs its ExecStart, again and again where its Restart says so.
# shellcheck source=common.sh
. "${0%/*}/common"
now='' verb=''
while [ $# -gt 0 ]; do
    case $1 in
    --now) now=1 ;;
    -*) ;;
    *) [ -z "$verb" ] || break; verb=$1 ;;
    esac
    shift
done

# field KEY: sets $value to the last one of it in the unit's file.
field() {
    value=
    while IFS= read -r line; do
        case $line in "$1="*) value=${line#*=} ;; esac
    done <"$file"
}

# main_pid: sets $main when the unit runs.
main_pid() {
    main=
    { read -r main <"$guest/run/$unit.pid"; } 2>/dev/null && kill -0 "$main" 2>/dev/null
}

stop() {
    if main_pid; then kill -TERM "-$main" 2>/dev/null; fi
    [ ! -e "$guest/run/$unit.pid" ] || rm -f "$guest/run/$unit.pid"
}

start() {
    if main_pid; then return 0; fi
    if [ ! -f "$file" ]; then
        echo "Failed to start $unit: Unit $unit not found." >&2
        return 5
    fi
    field ExecStart; command=$value
    field RestartSec; pause=$value
    field Restart; again=$value
    # shellcheck disable=SC2016
    HOME=$root USER=root LOGNAME=root DLWB_RIG_ROOT=1 \
        setsid /bin/sh -c '
            while :; do
                /bin/sh -c "exec $1"
                code=$?
                case $2 in
                always) ;;
                on-failure) [ $code -ne 0 ] || break ;;
                *) break ;;
                esac
                sleep "${3:-0.1}"
            done' unit "${command#[-@+!]}" "$again" "${pause%s}" \
        </dev/null >>"$guest/console" 2>&1 &
    echo $! >"$guest/run/$unit.pid"
}

# sshd shows the key that it read when it started.
restart_sshd() {
    cp "$guest/ssh/ssh_host_ed25519_key" "$node/host_key.next" &&
        mv -f "$node/host_key.next" "$node/host_key"
}

# on UNIT: does what was asked with it.
on() {
    unit=${1%.service}
    file=$guest/systemd/$unit.service
    case $unit in
    ssh | sshd) on_sshd; return ;;
    esac
    case $verb in
    start) start ;;
    restart | try-restart | reload-or-restart) stop; start ;;
    stop) stop ;;
    enable)
        [ -f "$file" ] || return 1
        : >"$guest/systemd/enabled/$unit"
        if [ "$now" ]; then start; fi
        ;;
    disable)
        rm -f "$guest/systemd/enabled/$unit"
        if [ "$now" ]; then stop; fi
        ;;
    mask | reset-failed) ;;
    is-active | status) if main_pid; then echo active; else echo inactive; return 3; fi ;;
    is-enabled) if [ -f "$guest/systemd/enabled/$unit" ]; then echo enabled; else echo disabled; return 1; fi ;;
    *) echo "systemctl of the rig: $verb is not known here" >&2; return 1 ;;
    esac
}

# on_sshd: the rig runs one server of that kind, and it is called ssh.
on_sshd() {
    if [ "$unit" = sshd ]; then
        echo "Failed to $verb sshd.service: Unit sshd.service not found." >&2
        return 5
    fi
    case $verb in
    restart | reload | try-restart | reload-or-restart) restart_sshd ;;
    is-active | status) echo active ;;
    esac
}

case $verb in
daemon-reload | daemon-reexec) exit 0 ;;
is-system-running) echo running; exit 0 ;;
poweroff | halt) exec "$node/bin/poweroff" ;;
list-units | show | cat) exit 0 ;;
esac
status=0
for unit; do on "$unit" || status=$?; done
exit $status
