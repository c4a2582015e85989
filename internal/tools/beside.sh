#!/bin/sh
# beside.sh COMMAND…: runs it with what nobody else wants of the processors: the
# tests wait for minutes, and still look at how long things take. A session of its
# own is a group of its own for Linux, which shares the processors out by groups.
apart=$(command -v setsid)
exec ${apart:+"$apart"} nice -n 19 sh -c '{ echo 19 >/proc/self/autogroup; } 2>/dev/null; exec "$@"' sh "$@"
