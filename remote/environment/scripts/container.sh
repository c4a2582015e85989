# Gives a node the image that its ranks run in, and the program that starts a
# command inside of it. In front of it are set: dir (where that program lies),
# context (where the code lies; both below the home directory), image (a name, or
# nothing: it is built), dockerfile (below the context, or nothing), own (the text
# of a Dockerfile of ours, or nothing), sources (files of the context that the image
# is made of, as patterns), mounts (lines), key, probe (probe.py), run (run.sh),
# make (yes, force, or nothing: only look).
: "${dir?}" "${context?}" "${image?}" "${dockerfile?}" "${own?}" "${sources?}" "${mounts?}" "${key?}" "${probe?}" "${run?}" "${make?}"
cd "$HOME" || exit 1
umask 077
line='
'

say() { printf 'dlwb\t%s\t%s\n' "$1" "$2"; }
news() { printf '|%s\n' "$1"; }

# engine: the first that answers. One that is there and does not is told.
engine() {
	for name in docker podman; do
		command -v "$name" >/dev/null || continue
		if why=$("$name" version --format '{{.Client.Version}}' 2>&1 >/dev/null) && why=$("$name" info 2>&1 >/dev/null); then
			# What is called docker may be podman.
			case $("$name" --version 2>/dev/null) in *odman*) name=podman ;; esac
			engine=$name
			return 0
		fi
		say mute "$name: $(printf '%s\n' "$why" | tail -n 1)"
	done
	return 1
}

# inputs: a digest of all that an image is built from.
inputs() {
	(
		cd "$context" 2>/dev/null || exit 0
		printf '%s\n' "$own"
		[ -z "$dockerfile" ] || cat "$dockerfile"
		[ ! -r .dockerignore ] || cat .dockerignore
		IFS=$line
		# shellcheck disable=SC2086 # patterns
		find $sources \( -name .git -o -name __pycache__ \) -prune -o -type f -print0 2>/dev/null | LC_ALL=C sort -z | xargs -0 -r sha256sum
	) | sha256sum | cut -c 1-16
}

# gpus: how a container gets the GPUs of the node; "missing WHY" where it can't.
gpus() {
	nvidia-smi -L 2>/dev/null | grep -q '^GPU ' || return 0
	cdi=$(grep -ls 'nvidia.com/gpu' /etc/cdi/* /var/run/cdi/* 2>/dev/null)
	if [ "$engine" = podman ]; then
		if [ -n "$cdi" ]; then echo "--device=nvidia.com/gpu=all"; else echo "missing cdi"; fi
	elif docker info --format '{{range $name, $r := .Runtimes}}{{$name}} {{end}}' 2>/dev/null | grep -qw nvidia || command -v nvidia-container-runtime-hook >/dev/null; then
		echo "--gpus=all"
	elif [ -n "$cdi" ]; then
		echo "--device=nvidia.com/gpu=all"
	else
		echo "missing toolkit"
	fi
}

quote() { printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")"; }

# write: the program that starts a command in a container.
write() {
	mkdir -p "$dir/home" || return 1
	# What differs from this when a command is started was set for it.
	awk 'BEGIN { for (k in ENVIRON) { v = ENVIRON[k]; gsub(/\n/, " ", v); print k "\t" v } }' >"$dir/baseline"
	{
		printf '#!/bin/sh\n# Made by dlwb for this cluster: runs a command in a container.\n'
		printf 'engine=%s image=%s gpus=%s dir=%s python=%s\nmounts=%s\n' "$(quote "$engine")" "$(quote "$id")" "$(quote "$gpus")" \
			"$(quote "$HOME/$dir")" "$(quote "$1")" "$(quote "$mounts")"
		printf '%s\n' "$run"
	} >"$dir/run.new" && chmod 700 "$dir/run.new" && mv -f "$dir/run.new" "$dir/run" && ln -sf run "$dir/python" && ln -sf run "$dir/gone"
}

# unchanged: says what was made before, where that is what is asked for. One question to
# the engine that made it is enough: others, and more, are asked where it does not hold.
unchanged() {
	[ "$make" != force ] && [ -r "$dir/said" ] || return 1
	said=$(cat "$dir/said")
	made=${said%%"$line"*}
	[ "${made%% *}" = "$key" ] || return 1
	made=${made#* }
	engine=${made%% *}
	name=${image:-localhost/dlwb-env:$(inputs)}
	[ "$("$engine" image inspect --format '{{.Id}}' "$name" 2>/dev/null)" = "${made#* }" ] || return 1
	say engine "$engine"
	say image "$name"
	printf '%s\n' "${said#*"$line"}"
	say unchanged yes
}

say home "$HOME"
say path "$PATH"
if unchanged; then
	exit 0
fi
engine || {
	say engine none
	exit 1
}
say engine "$engine"
if [ -z "$image" ]; then
	image=localhost/dlwb-env:$(inputs)
	built=yes
else
	built=
fi
say image "$image"
id=$("$engine" image inspect --format '{{.Id}}' "$image" 2>/dev/null) || id=
[ -n "$make" ] || exit 0

gpus=$(gpus)
case $gpus in missing*)
	say nogpu "$gpus $engine"
	exit 1
	;;
esac
if [ -z "$id" ] || [ "$make" = force ]; then
	at=$HOME
	if [ -z "$built" ]; then
		set -- "$engine" pull "$image"
	else
		if [ -n "$own" ]; then
			dockerfile=$HOME/$dir/Dockerfile
			mkdir -p "$dir" && printf '%s\n' "$own" >"$dockerfile" || exit 1
		fi
		at=$HOME/$context
		set -- "$engine" build --tag "$image" --file "$dockerfile" .
	fi
	say command "$*"
	news "$*"
	{
		cd "$at" && "$@" 2>&1 </dev/null
		echo "=$?"
	} | tr '\r' '\n' | {
		code=1
		while IFS= read -r text; do
			case $text in
			=[0-9]*) code=${text#=} ;;
			*) news "$text" ;;
			esac
		done
		exit "$code"
	} || exit $?
	id=$("$engine" image inspect --format '{{.Id}}' "$image") || exit 1
fi
say command "$engine run $image python3"
write python3 || exit 1
# shellcheck disable=SC2016 # the dollars are the container's
python=$("$dir/run" sh -c 'command -v python3 || command -v python') || {
	say step python
	exit 1
}
write "$python" || exit 1
said=$("$dir/python" -c "$probe" venv "$HOME/$dir/python") || exit 1
printf '%s %s %s\n%s\n' "$key" "$engine" "$id" "$said" >"$dir/said"
printf '%s\n' "$said"
