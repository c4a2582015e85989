# Stands in for the rank script of a node: it keeps the log and the exit code,
# and takes its child with it.
dir=$1
shift
"$@" >>"$dir/rank-$RANK.log" 2>&1 &
child=$!
trap 'kill $child' TERM INT
wait $child
code=$?
echo "$code" >"$dir/rank-$RANK.exit"
exit "$code"
