# Tells which python3 there are on a node, in one round trip. In front of it
# are set: probe (probe.py), want (an interpreter asked for, a version of Python,
# or nothing), names (packages to look for), dirs (looked into after the PATH,
# with colons; from the home directory where they do not begin with /), venv
# (the directory of the cluster's virtual environment, or nothing), look (where
# what the interpreters said is kept; nothing: nowhere) and key (of what).
#
# Starting every python3 takes most of the time. So what they said is kept
# together with a stamp of all that could make them say something else (see
# stamp.sh), and while that is the same they are not asked.
: "${probe?}" "${want?}" "${names?}" "${dirs?}" "${venv?}" "${look?}" "${key?}"
set -f
cd "$HOME" || exit 1
tab=$(printf '\t')
line='
'

say() { printf 'dlwb\t%s\t%s\n' "$1" "$2"; }

# first KEY FILE: tells the first line of a file.
first() {
	if { IFS= read -r text || [ -n "$text" ]; } 2>/dev/null <"$2"; then say "$1" "$text"; fi
}

said='' watch='' steady=yes

# Conda keeps a list of what it has made: its own prefix is where it is installed,
# wherever that is.
if [ -r .conda/environments.txt ]; then
	while IFS= read -r at; do
		case $at in */envs/* | *:*) ;; /*) [ ! -x "$at/bin/conda" ] || dirs=$dirs:$at/bin ;; esac
	done <.conda/environments.txt
fi

# shim FILE: a script that starts a Python may start another one tomorrow, so it is
# asked each time. What a shim of pyenv starts hangs on files that are known, and on
# a variable that is part of the stamp; to ask one takes ten times a Python's start.
# shellcheck disable=SC2016 # the dollars are the shim's
shim() {
	root=
	while IFS= read -r text; do
		case $text in 'exec "/'*'/libexec/pyenv" exec "$program" "$@"')
			root=${text#'exec "'}
			root=${root%'/libexec/pyenv" exec "$program" "$@"'}
			;;
		esac
	done <"$1"
	[ -n "$root" ] && [ -z "${PYENV_DIR-}" ] || return 1
	files=$root/version:$root/versions dir=$(pwd)
	case $root$dir in *:* | *"$tab"* | *"$line"*) return 1 ;; esac
	while [ -n "$dir" ]; do
		files=$files:$dir/.python-version
		dir=${dir%/*}
	done
	files=$files:/.python-version
	said=${said}dlwb${tab}watch$tab$files$line watch=$watch:$files
}

# broken SAID: why an interpreter does not run, in one line. Where Python itself can't
# begin, its last lines are of a stack that is empty.
broken() {
	fault=${1##*"$line"}
	case $1 in *'Fatal Python error'*) fault=${1#*'Fatal Python error'} fault="Fatal Python error${fault%%"$line"*}" ;; esac
	printf '%s%s' "$fault" "${PYTHONHOME:+ (PYTHONHOME is set to $PYTHONHOME)}"
}

# ask ROLE PATH: has an interpreter describe itself. What is broken may be mended
# tomorrow.
ask() {
	# shellcheck disable=SC2086 # names are words
	new=$({
		why=$("$2" -c "$probe" "$1" "$2" $names 2>&1 >&4 </dev/null) ||
			printf 'dlwb\tbad\t%s\t%s\t%s\n' "$1" "$2" "$(broken "$why")"
	} 4>&1)
	said=$said$new$line
	if [ "$(head -c 2 "$2")" = '#!' ] && ! shim "$2"; then steady=; fi
	case $new in *"dlwb${tab}bad$tab"*) steady= ;; esac
	more=${new#*"dlwb${tab}watch${tab}"}
	[ "$more" = "$new" ] || watch=$watch:${more%%"$line"*}
}

say home "$HOME"
say path "$PATH"
say pythonpath "${PYTHONPATH-}"
for uv in "$(command -v uv)" "$HOME/.local/bin/uv" "$HOME/.cargo/bin/uv" "$HOME/.dlwb/uv/bin/uv"; do
	[ ! -x "$uv" ] || { say uv "$uv" && break; }
done
first compat .dlwb/compat/sitecustomize.py
[ -z "$venv" ] || first installed "$venv/.dlwb-done"

# versioned: a version was looked for before, and perhaps installed: python.sh keeps
# where. Else it is on the PATH, or pyenv has built it, or uv has brought it. A shim of
# pyenv starts the version that is chosen, and no other.
versioned() {
	wanted=
	[ ! -r ".dlwb/python/$want" ] || IFS= read -r wanted <".dlwb/python/$want" || :
	[ ! -x "$wanted" ] || return 0
	wanted=$(command -v "python$want" || :)
	case $wanted in */shims/*) ;; *) [ ! -x "$wanted" ] || return 0 ;; esac
	pyenv=${PYENV_ROOT:-$HOME/.pyenv}/versions uv=${UV_PYTHON_INSTALL_DIR:-${XDG_DATA_HOME:-$HOME/.local/share}/uv/python}
	set +f
	for at in "$uv/cpython-$want-"*/bin/python3 "$uv/cpython-$want."*/bin/python3 "$HOME/.local/bin/python$want" \
		"$pyenv/$want."*/bin/python3 "$pyenv/$want/bin/python3"; do
		[ ! -x "$at" ] || wanted=$at
	done
	set -f
}

case $want in
"") wanted= ;;
[0-9]*) versioned ;;
[~]/*) wanted=$HOME/${want#??} ;;
*) wanted=$(command -v "$want" || echo "$want") ;;
esac

if [ -n "$look" ] && [ -r "$look" ]; then
	kept=$(cat "$look")
	rest=${kept#"$key$line"}
	if [ "$rest" != "$kept" ]; then
		watch=${rest%%"$line"*}
		rest=${rest#*"$line"}
		now=$(stamp)
		said=${rest#"$now$line$line"}
		if [ -n "$now" ] && [ "$said" != "$rest" ]; then
			printf '%s\n' "$said"
			exit 0
		fi
		said='' watch=''
	fi
fi

said="dlwb${tab}uid${tab}$(id -u)${line}dlwb${tab}kernel${tab}$(uname -s)$line"
# shellcheck disable=SC1091 # the node's own
[ ! -r /etc/os-release ] || said="${said}dlwb${tab}distro${tab}$(. /etc/os-release && echo "${ID-} ${ID_LIKE-}")$line"
[ -z "$wanted" ] || ask want "$wanted"
if [ -n "$venv" ] && [ -x "$venv/bin/python" ]; then ask venv "$venv/bin/python"; fi

found=:
count=0
IFS=:
for dir in $PATH $dirs; do
	if [ -z "$dir" ] || [ ! -x "$dir/python3" ] || [ "$count" -ge 12 ]; then continue; fi
	real=$(cd "$dir" && pwd -P) || continue
	case $found in *:"$real":*) continue ;; esac # /bin is /usr/bin on most systems
	found=$found$real:
	count=$((count + 1))
	IFS=' '
	case $dir in
	/*) ask path "$dir/python3" ;;
	*) ask path "$HOME/$dir/python3" ;;
	esac
	IFS=:
done
unset IFS
# Nothing on the PATH and in the usual places: what pyenv has built and nobody has
# chosen, and what uv has brought.
case $said in *"dlwb${tab}python${tab}"*) ;; *)
	set +f
	for at in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python3 \
		"${UV_PYTHON_INSTALL_DIR:-${XDG_DATA_HOME:-$HOME/.local/share}/uv/python}"/cpython-3*/bin/python3; do
		if [ ! -x "$at" ] || [ "$count" -ge 12 ]; then continue; fi
		count=$((count + 1))
		set -f
		ask path "$at"
	done
	set -f
	;;
esac
[ -z "$steady" ] || said="${said}dlwb${tab}steady${tab}yes$line"
printf '%s' "$said"
if [ -n "$look" ] && [ -n "$steady" ] && [ -d "${look%/*}" ]; then
	now=$(stamp)
	[ -z "$now" ] || {
		umask 077
		printf '%s\n%s\n%s\n\n%s' "$key" "$watch" "$now" "$said" >"$look.$$" && mv -f "$look.$$" "$look"
	} 2>/dev/null || rm -f "$look.$$"
fi
exit 0
