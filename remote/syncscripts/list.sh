#!/bin/sh
# Lists what is to be pulled. Arguments: the code directory, then paths in it.
# Prints the clock and the tools, a line for every path that is not there, and
# then the state of everything below the others: size, time, mode, and what
# else tells one content from another (inode, both times to the nanosecond).
# Changes nothing.
LC_ALL=C TZ=UTC0
export LC_ALL TZ
unset CDPATH
cd "$HOME" || exit 1
printf 'now %s' "$(date +%s)"
command -v tar >/dev/null 2>&1 && printf ' tar'
echo
there=yes
cd "$1" 2>/dev/null || there=
shift

n=0
for path in "$@"; do
	n=$((n + 1))
	if [ -z "$there" ] || { [ ! -e "./$path" ] && [ ! -L "./$path" ]; }; then
		echo "missing $n"
	fi
done
echo list
[ -n "$there" ] || exit 0

# A path that is asked for may itself be a link to a directory elsewhere; links
# below it are not followed.
for path in "$@"; do
	[ -e "./$path" ] || [ -L "./$path" ] || continue
	if stat -c %s . >/dev/null 2>&1; then
		find -H ".//$path" -exec stat -c '%s %Y %f %i %.9Y %.9Z %n' {} +
	else
		find -H ".//$path" -exec stat -f '%z %m %Xp %i %Fm %Fc %N' {} +
	fi
done 2>/dev/null
exit 0
