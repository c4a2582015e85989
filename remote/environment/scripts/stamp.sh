# Tells what would be different if another interpreter or package came, went or
# changed. In front of it are set: wanted, dirs, venv (see probe.sh) and watch
# (directories of packages, with colons). Nothing comes out where stat has no
# format: then nothing is taken for unchanged.
stamp() (
	: "${wanted?}" "${dirs?}" "${venv?}" "${watch?}"
	set -f
	IFS=:
	all=
	for dir in $PATH $dirs; do
		[ -z "$dir" ] || all=$all:$dir/python3
	done
	# shellcheck disable=SC2086 # words
	set -- /bin/sh ${wanted:+"$wanted"} ${venv:+"$venv/bin/python"} ${all#:} ${watch#:}
	now=$(LC_ALL=C stat -Lc '%n %i %s %Z %y' -- "$@" 2>/dev/null)
	case $now in "/bin/sh "[0-9]*)
		printf '%s\n%s\n%s\n%s' "$PATH" "${PYTHONPATH-}" "${PYENV_VERSION-} ${PYENV_DIR-}" "$now"
		;;
	esac
)
