#!/bin/sh
# Puts unpacked files in their places. The calls of its functions are added by
# the sender, which knows what is to happen to which file.
# Arguments: where the files lie, where the state lies, where what has to make
# way goes. The working directory is the code directory.
set -e
stage=$1 state=$2 kept=$3 new=$2/new.$$

# stats prints the state of the files whose names come on stdin, NUL-terminated.
stats() {
	if stat -c %s . >/dev/null 2>&1; then
		xargs -0 stat -c '%s %y %f %n' 2>/dev/null || :
	else
		xargs -0 stat -f '%z %Fm %Xp %N' 2>/dev/null || :
	fi
}

# keep moves away what dlwb did not put there, or what was edited since.
keep() {
	if [ -e "./$1" ] || [ -L "./$1" ]; then
		case $1 in
		*/*) (umask 077 && mkdir -p "$kept/${1%/*}") ;;
		*) (umask 077 && mkdir -p "$kept") ;;
		esac
		mv -f "./$1" "$kept/$1"
		printf '%s\0' "$1" >>"$stage/made-way"
	fi
}

# over makes way for a file where dlwb's own may be replaced: only a directory
# is in the way of a rename.
over() {
	if [ -d "./$1" ] && [ ! -L "./$1" ]; then
		keep "$1"
	fi
}

# new reports whether nothing has a name yet.
new() {
	[ ! -e "./$1" ] && [ ! -L "./$1" ]
}

# dir makes a directory; a link to one is as good.
dir() {
	if [ ! -d "./$1" ]; then
		keep "$1"
		mkdir -p "./$1"
	fi
}

# save writes files of the state, each so that it is whole or as it was.
save() {
	(cd "$stage" && cp "$@" "$new/")
	(cd "$new" && mv -f "$@" ..)
}

# without prints the lines of the second file but those that are about a name
# in the first one. $1 is what awk does to be left with a line's name.
without() {
	awk 'FILENAME == ARGV[1] { gone[$0]; next } { name = $0; '"$1"'; if (!(name in gone)) print }' "$2" "$3"
}

# whole makes the records of a batch that came with only what changed in them.
whole() {
	[ -f "$stage/count" ] || return 0
	tail -n +2 "$state/manifest" >"$stage/old"
	without 'sub(/^[fdl] [0-7]+ [0-9]+ -?[0-9]+ "([^"\\]|\\.)*" /, "", name)' "$stage/less" "$stage/old" >"$stage/rest"
	cat "$stage/first" "$stage/rest" "$stage/more" >"$stage/manifest"
	without 'name = substr(name, index(name, " .//") + 4)' "$stage/drop" "$state/seen" >"$stage/keep"
	if [ "$(($(wc -l <"$stage/manifest")))" != "$(cat "$stage/count")" ]; then
		echo "the record of what lies here is not as it was" >&2
		exit 16
	fi
}

# large takes a file that has come by itself: its word, its name, its mode and
# its time.
large() {
	case $2 in
	*/*) mkdir -p "$stage/f/${2%/*}" ;;
	*) mkdir -p "$stage/f" ;;
	esac
	mv -f ".dlwb-large/$1.ok" "$stage/f/$2"
	chmod "$3" "$stage/f/$2"
	touch -t "$4" "$stage/f/$2"
}

# begin notes how the new files look before any of them is in its place: when
# we are stopped half-way, the next sync knows them for dlwb's own.
begin() {
	trap 'rm -rf "$new"' EXIT
	(umask 077 && mkdir -p "$new")
	# Who was killed could not remove its own. By age, as another node with the
	# same home may be at work here, whose processes are not to be seen.
	find "$state" -name 'new.*' -prune -mtime +0 -exec rm -rf {} +
	mkdir -p "$stage/f"
	whole
	(cd "$stage/f" && stats) <"$stage/sent" >"$stage/new"
	for part in "$state/seen" "$state/pending" "$stage/new"; do
		if [ -f "$part" ]; then cat "$part"; fi
	done >"$stage/pending"
	for part in "$state/pending-names" "$stage/sent"; do
		if [ -f "$part" ]; then cat "$part"; fi
	done >"$stage/pending-names"
	save pending-names pending
	: >"$stage/made-way"
}

finish() {
	cat "$stage/keep" "$stage/new" >"$stage/seen"
	sort "$stage/seen" >"$stage/sorted"
	set -- seen sorted manifest
	[ ! -f "$stage/names" ] || set -- names "$@"
	for part in "$stage"/chunks.*; do
		[ ! -f "$part" ] || set -- "$@" "${part##*/}"
	done
	save "$@"
	for part in "$state"/chunks.*; do
		[ ! -f "$part" ] || grep -qF "${part##*/chunks.}" "$state/manifest" || rm -f "$part"
	done
	rmdir .dlwb-large 2>/dev/null || :
	rm -rf "$state/pending" "$state/pending-names"
	wc -c <"$stage/made-way"
	cat "$stage/made-way" "$stage/new"
}
