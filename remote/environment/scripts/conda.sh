# Makes a conda environment, or tells what there is of one. In front of it are set:
# prefix (where it lies, below the home directory), key (what it is to be made of),
# probe (probe.py), activate (activate.py), make (yes, or nothing: only look), file
# (the environment file, below the home directory), and of the micromamba that is
# fetched where there is nothing: url, sum64, sumarm (SHA-256 by processor).
: "${prefix?}" "${key?}" "${probe?}" "${activate?}" "${make?}" "${file?}" "${url?}" "${sum64?}" "${sumarm?}"
cd "$HOME" || exit 1
umask 077

say() { printf 'dlwb\t%s\t%s\n' "$1" "$2"; }
news() { printf '|%s\n' "$1"; }

# tool: the first that is there; the quicker ones first. Commands by ssh do not
# have the PATH of a terminal.
tool() {
	for name in micromamba mamba conda; do
		for at in "$(command -v "$name")" "$HOME/.dlwb/micromamba/bin/$name" "$HOME/.local/bin/$name" \
			"$HOME/micromamba/bin/$name" "$HOME/bin/$name" \
			"$HOME/miniforge3/bin/$name" "$HOME/mambaforge/bin/$name" "$HOME/miniconda3/bin/$name" "$HOME/anaconda3/bin/$name" \
			/opt/conda/bin/$name /opt/miniconda3/bin/$name /opt/miniforge3/bin/$name /opt/anaconda3/bin/$name; do
			case $at in /*) [ ! -x "$at" ] || { printf '%s\n' "$at" && return; } ;; esac
		done
	done
}

# tell: what the environment's Python said of itself, asked again when packages
# came or went since.
tell() {
	[ -x "$prefix/bin/python" ] || return 0
	if [ ! -r "$prefix/.dlwb-said" ] || [ -n "$(find "$prefix"/lib/python3*/site-packages "$prefix"/etc/conda -maxdepth 0 -newer "$prefix/.dlwb-said" 2>/dev/null)" ]; then
		{
			"$HOME/$prefix/bin/python" -c "$probe" venv "$HOME/$prefix/bin/python" 2>&1 </dev/null
			"$HOME/$prefix/bin/python" -c "$activate" "$HOME/$prefix" 2>&1 </dev/null
		} >"$prefix/.dlwb-said.new" && mv -f "$prefix/.dlwb-said.new" "$prefix/.dlwb-said"
	fi
	cat "$prefix/.dlwb-said"
}

# fetch: micromamba, which is one file.
fetch() {
	sum=
	case $(uname -s)-$(uname -m) in
	Linux-x86_64) arch=linux-64 sum=$sum64 ;;
	Linux-aarch64) arch=linux-aarch64 sum=$sumarm ;;
	*)
		echo "micromamba is not known for $(uname -s) on $(uname -m)"
		return 1
		;;
	esac
	mkdir -p .dlwb/micromamba/bin && to=.dlwb/micromamba/bin/.new.$$ || return 1
	if command -v curl >/dev/null; then
		curl --fail --silent --show-error --location --connect-timeout 20 --speed-limit 1 --speed-time 60 --retry 2 --output "$to" "$url$arch"
	elif command -v wget >/dev/null; then
		# BusyBox's wget knows few options. One that is quiet does not say why it failed.
		limits=
		case $(wget --version 2>/dev/null) in *"GNU Wget"*) limits="--no-verbose --timeout=20 --tries=3" ;; esac
		# shellcheck disable=SC2086 # several words
		wget $limits -O "$to" "$url$arch"
	else
		echo "there is neither curl nor wget"
		false
	fi || {
		rm -f "$to"
		return 1
	}
	case $(sha256sum "$to") in
	"$sum "*) chmod 700 "$to" && mv -f "$to" .dlwb/micromamba/bin/micromamba ;;
	*)
		echo "what came from $url$arch is not the micromamba that dlwb knows: its SHA-256 is another"
		rm -f "$to"
		return 1
		;;
	esac
}

say home "$HOME"
say path "$PATH"
if [ -z "$make" ]; then
	[ ! -r "$prefix/.dlwb-done" ] || say installed "$(cat "$prefix/.dlwb-done")"
	tell
	exit 0
fi

lock=${prefix%/*}/.conda.lock
if command -v flock >/dev/null; then
	exec 9>"$lock" && flock 9 # nodes may share a home
	if [ -r "$prefix/.dlwb-done" ] && [ "$(cat "$prefix/.dlwb-done")" = "$key" ] && [ "$make" != force ]; then
		tell
		say shared yes
		exit 0
	fi
fi
tool=$(tool)
if [ -z "$tool" ]; then
	news "fetching micromamba"
	said=$(fetch 2>&1) || {
		printf '%s\n' "$said" >&2
		say step fetch
		exit 1
	}
	tool=$HOME/.dlwb/micromamba/bin/micromamba
fi
case $tool in
"$HOME"/.dlwb/*) export MAMBA_ROOT_PREFIX="$HOME/.dlwb/micromamba" ;;
esac
export CONDA_ALWAYS_YES=true MAMBA_ALWAYS_YES=true NO_COLOR=1 CONDA_NUMBER_CHANNEL_NOTICES=0 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
unset CONDA_PREFIX CONDA_DEFAULT_ENV CONDA_SHLVL PYTHONPATH PYTHONHOME VIRTUAL_ENV
rm -rf "$prefix"
case $tool in
*/micromamba) set -- "$tool" create --prefix "$HOME/$prefix" --file "$HOME/$file" ;;
*) set -- "$tool" env create --prefix "$HOME/$prefix" --file "$HOME/$file" ;;
esac
news "making the conda environment with $tool"
say command "$*"
code=${prefix%/*}/.conda.code
{
	"$@" 2>&1 </dev/null 9>&-
	echo $? >"$code"
} | tr '\r' '\n' | sed 's/^/|/'
ended=$(cat "$code" && rm -f "$code") || ended=1
if [ "$ended" = 0 ] && [ ! -x "$prefix/bin/python" ]; then
	say step python
	ended=1
fi
if [ "$ended" != 0 ]; then
	rm -rf "$prefix"
	exit "$ended"
fi
tell
printf '%s\n' "$key" >"$prefix/.dlwb-done"
