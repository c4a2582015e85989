# Prints one frame of what the container uses: by its cgroup where it sees that,
# else what the node says of itself.
read -r up _ </proc/uptime
echo "frame $up"
# shellcheck disable=SC2154 # dlwb sets it in front of this
echo "every $every"
cores=$(nproc 2>/dev/null || grep -c ^processor /proc/cpuinfo)
echo "cores $cores"
c=/sys/fs/cgroup
if [ -r $c/cpu.stat ] && used=$(sed -n 's/^usage_usec //p' $c/cpu.stat) && [ -n "$used" ]; then
	awk -v u="$used" -v t="$up" -v n="$cores" 'BEGIN { printf "cpu %.0f %.0f\n", u, t * n * 1000000 }'
else
	awk '/^cpu / { t = $2 + $3 + $4 + $5 + $6 + $7 + $8; printf "cpu %.0f %.0f\n", t - $5 - $6, t }' /proc/stat
fi
most=$(cat $c/memory.max 2>/dev/null)
case $most in
'' | max) awk '/^MemTotal/ { t = $2 } /^MemAvailable/ { a = $2 } END { print "mem", t - a, t }' /proc/meminfo ;;
*)
	file=$(sed -n 's/^inactive_file //p' $c/memory.stat)
	awk -v u="$(cat $c/memory.current)" -v f="${file:-0}" -v m="$most" 'BEGIN { printf "mem %.0f %.0f\n", (u - f) / 1024, m / 1024 }'
	;;
esac
awk 'NR > 2 { sub(":", " "); if ($1 != "lo") { r += $2; s += $10 } } END { printf "net %.0f %.0f\n", r, s }' /proc/net/dev
df -Pk . 2>/dev/null | awk 'NR == 2 { print "disk", $3, $2 }'
if command -v nvidia-smi >/dev/null 2>&1; then
	timeout 10 nvidia-smi --query-gpu=index,name,utilization.gpu,memory.used,memory.total,temperature.gpu,power.draw,power.limit --format=csv,noheader,nounits 2>&1 | sed 's/^/smi /'
else
	echo "smierr no GPU"
fi
echo end
