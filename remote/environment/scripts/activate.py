# Tells as one line what activating a conda environment sets: its variables, and
# those of the scripts that its packages bring. Its Python runs this; the argument
# is the prefix.
import glob
import json
import os
import shutil
import subprocess
import sys

prefix = sys.argv[1]
env = dict(os.environ)
for name in ("PYTHONHOME", "VIRTUAL_ENV"):
    env.pop(name, None)
env.update(CONDA_PREFIX=prefix, CONDA_DEFAULT_ENV=prefix, CONDA_SHLVL="1",
           PATH=os.path.join(prefix, "bin") + ":" + env.get("PATH", ""))
try:
    with open(os.path.join(prefix, "conda-meta", "state"), encoding="utf-8") as f:
        env.update((k, v) for k, v in json.load(f).get("env_vars", {}).items() if isinstance(v, str))
except (OSError, ValueError):
    pass
scripts = sorted(glob.glob(os.path.join(glob.escape(prefix), "etc", "conda", "activate.d", "*.sh")))
if scripts:
    shell = shutil.which("bash") or "sh"
    tell = "import json, os; print('\\n' + json.dumps(dict(os.environ)))"
    done = subprocess.run([shell, "-c", 'python=$1 tell=$2; shift 2; for script do . "$script"; done; exec "$python" -c "$tell"',
                           "dlwb", sys.executable, tell] + scripts, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          stdin=subprocess.DEVNULL)
    try:
        env = json.loads(done.stdout.decode().rsplit("\n", 2)[-2])
    except (ValueError, IndexError):
        pass
own = ("_", "SHLVL", "PWD", "OLDPWD", "PS1")
print("dlwb\tenv\t" + json.dumps(sorted(k + "=" + v for k, v in env.items() if os.environ.get(k) != v and k not in own)))
