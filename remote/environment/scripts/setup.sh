# Runs the set-up commands of a profile on a node, unless they ran here before and
# nothing they hang on has changed. In front of it are set: dir (where they run,
# below the home directory), mark (the file that says what ran), key (what has to
# run) and force (yes, or nothing). The commands are the arguments: one shell runs
# them, so that a directory or a variable that one sets is the next one's too.
: "${dir?}" "${mark?}" "${key?}" "${force?}"
cd "$HOME" && mkdir -p "$dir" && cd "$dir" || exit 1
# Nodes that share a home are machines of their own.
dlwb_mark=$HOME/dlwb/$mark.$(uname -n) dlwb_key=$key
if [ -z "$force" ] && [ -r "$dlwb_mark" ] && [ "$(cat "$dlwb_mark")" = "$dlwb_key" ]; then
	printf 'dlwb\tskipped\n'
	exit 0
fi
rm -f "$dlwb_mark"
unset dir mark key force
exec </dev/null 2>&1
dlwb_line=0
for dlwb_command in "$@"; do
	dlwb_line=$((dlwb_line + 1))
	printf 'dlwb\tline\t%s\n' "$dlwb_line"
	eval "$dlwb_command" || exit $?
done
printf '%s\n' "$dlwb_key" >"$dlwb_mark"
