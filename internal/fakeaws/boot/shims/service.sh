#!/bin/sh
# service UNIT VERB
exec "${0%/*}/systemctl" "$2" "$1"
