# Finds a conda environment that is on a node already, and tells what its Python is
# and what activating it sets. In front of it are set: name (as `conda activate` takes
# it: a name, or a path), probe (probe.py) and activate (activate.py). It makes nothing.
: "${name?}" "${probe?}" "${activate?}"
cd "$HOME" || exit 1
say() { printf 'dlwb\t%s\t%s\n' "$1" "$2"; }

# roots: where conda and its like are installed, and where they keep environments.
roots() {
	for tool in conda mamba micromamba; do
		at=$(command -v "$tool") || continue
		case $at in /*/bin/"$tool" | /*/condabin/"$tool") printf '%s\n' "${at%/*/*}" ;; esac
	done
	for at in "${CONDA_PREFIX-}" "${MAMBA_ROOT_PREFIX-}" "$HOME/.conda" "$HOME/.local/share/mamba" "$HOME/.mamba" "$HOME/micromamba" \
		"$HOME/miniforge3" "$HOME/mambaforge" "$HOME/miniconda3" "$HOME/anaconda3" "$HOME/miniconda" "$HOME/anaconda" \
		/opt/conda /opt/miniconda3 /opt/miniforge3 /opt/anaconda3; do
		[ -z "$at" ] || printf '%s\n' "$at"
	done
}

# every: all environments, each once, as the list of conda has them first.
every() {
	{
		[ ! -r .conda/environments.txt ] || cat .conda/environments.txt
		roots | while IFS= read -r root; do
			[ ! -d "$root/conda-meta" ] || printf '%s\n' "$root"
			for at in "$root"/envs/*; do [ ! -d "$at/conda-meta" ] || printf '%s\n' "$at"; done
		done
	} | awk 'substr($0, 1, 1) == "/" && !seen[$0]++'
}

found=
case $name in
/*) found=$name ;;
[~]/*) found=$HOME/${name#??} ;;
*)
	found=$(every | while IFS= read -r at; do
		case $at in
		*/envs/"$name") ;;
		*/envs/*) continue ;;
		*/"$name") ;;
		*) if [ "$name" != base ] || [ ! -x "$at/bin/conda" ]; then continue; fi ;;
		esac
		[ ! -x "$at/bin/python" ] || printf '%s\n' "$at"
	done)
	;;
esac
say home "$HOME"
say path "$PATH"
say pythonpath "${PYTHONPATH-}"
first=$(printf '%s\n' "$found" | head -n 1)
if [ -z "$first" ] || [ ! -x "$first/bin/python" ]; then
	every | while IFS= read -r at; do say there "$at"; done
	exit 0
fi
printf '%s\n' "$found" | tail -n +2 | while IFS= read -r at; do say also "$at"; done
say at "$first"
"$first/bin/python" -c "$probe" venv "$first/bin/python" 2>&1 </dev/null ||
	say broken "$("$first/bin/python" -V 2>&1 | tail -n 1)"
"$first/bin/python" -c "$activate" "$first" 2>/dev/null </dev/null
exit 0
