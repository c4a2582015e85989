# Finds a version of Python that is not on the PATH, and installs it where it is
# not on the node at all. In front of it are set: want (3.12), uv (or nothing),
# base (an interpreter that can make virtual environments, or nothing) and pin
# (the uv that is installed where there is none). What was found is kept in
# ~/.dlwb/python, so that the next look is as quick as one at the PATH.
: "${want?}" "${uv?}" "${base?}" "${pin?}"
cd "$HOME" || exit 1
umask 077

say() { printf '|%s\n' "$1"; }

# found PATH: keeps it and ends.
found() {
	mkdir -p .dlwb/python && printf '%s\n' "$1" >".dlwb/python/$want" || exit 1
	printf '=%s\n' "$1"
	exit 0
}

# A patch of the version that pyenv has built.
best=
for dir in "${PYENV_ROOT:-$HOME/.pyenv}/versions/$want" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$want".*; do
	[ ! -x "$dir/bin/python3" ] || best=$dir/bin/python3
done
[ -z "$best" ] || found "$best"

if [ -z "$uv" ]; then
	[ -n "$base" ] || {
		echo "there is no uv, and no Python that could install it" >&2
		exit 3
	}
	say "installing $pin, which brings other versions of Python"
	if ! "$base" -m venv .dlwb/uv >&2 || ! .dlwb/uv/bin/python -m pip --disable-pip-version-check --no-input install --quiet "$pin" >&2; then
		rm -rf .dlwb/uv
		exit 4
	fi
	uv=$HOME/.dlwb/uv/bin/uv
fi
UV_NO_PROGRESS=1 NO_COLOR=1
export UV_NO_PROGRESS NO_COLOR
[ -z "${PIP_CERT-}" ] || [ -n "${SSL_CERT_FILE-}" ] || export SSL_CERT_FILE="$PIP_CERT"
path=$("$uv" python find --no-project --managed-python "$want" 2>/dev/null) && [ -x "$path" ] && found "$path"
say "uv installs Python $want"
"$uv" python install --managed-python "$want" >&2 || exit 5
path=$("$uv" python find --no-project --managed-python "$want") || exit 5
found "$path"
