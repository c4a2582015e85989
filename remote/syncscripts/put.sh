#!/bin/sh
# Puts what comes as a tar on stdin into a directory. Arguments: the directory,
# and one for what is in the way there, both below the home. Called by dlwb
# (Put). Each thing is moved to its place when all has come.
umask 022
unset CDPATH
cd "$HOME" && mkdir -p "$1" && cd "$1" || exit 73
aside=$HOME/$2
new=.dlwb-put.$$
trap 'rm -rf "$new"' EXIT
mkdir "$new" || exit 73
(cd "$new" && exec tar -xof -) || exit 74
for it in "$new"/*; do
	[ -e "$it" ] || [ -L "$it" ] || continue
	name=${it##*/}
	if [ -e "./$name" ] || [ -L "./$name" ]; then
		mkdir -p "$aside" && to=$aside/$name n=1 || exit 73
		while [ -e "$to" ]; do n=$((n + 1)) to=$aside/$name.$n; done
		mv "./$name" "$to" || exit 73
	fi
	mv "$it" "./$name" || exit 73
done
