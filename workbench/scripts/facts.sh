#!/bin/sh
# Tells what a node is and what its Python has, for the recipe of a run: one fact
# a line. A dlwb that has launched a run calls it, once; it leaves nothing.
# usage: facts PYTHON
python=$1
echo "host $(uname -n)"
echo "kernel $(uname -sr)"
if [ -r /etc/os-release ]; then sed -n 's/^PRETTY_NAME=/system /p' /etc/os-release; fi
echo "cores $(getconf _NPROCESSORS_ONLN 2>/dev/null)"
if [ -r /proc/meminfo ]; then sed -n 's/^MemTotal: *\([0-9]*\) kB/memory \1/p' /proc/meminfo; fi
# A driver that hangs is not asked again, and whoever asked it does not stay.
smi() { timeout -s KILL 10 nvidia-smi "$@" 2>/dev/null; }
if command -v nvidia-smi >/dev/null 2>&1 && gpus=$(smi --query-gpu=name --format=csv,noheader | head -n 64) && [ -n "$gpus" ]; then
    echo "$gpus" | sed 's/^/gpu /'
    smi --query-gpu=driver_version --format=csv,noheader | head -n 1 | sed 's/^/driver /'
    smi | sed -n 's/.*CUDA Version: *\([0-9.]*\).*/cuda \1/p' | head -n 1
fi
# An image of EC2 says which one it is only to the machine itself.
if [ -r /var/lib/cloud/data/instance-id ] && [ -r /run/cloud-init/instance-data.json ]; then
    sed -n 's/.*"ami-id": *"\([^"]*\)".*/image \1/p;s/.*"ami_id": *"\([^"]*\)".*/image \1/p' /run/cloud-init/instance-data.json | head -n 1
fi
printf 'python '
"$python" - <<'END' 2>/dev/null || echo '{}'
import json, os, re, sys
try:
    from importlib import metadata, util
except ImportError:
    sys.exit(1)
packages, torch, cuda = [], "", ""
for d in metadata.distributions():
    try:
        name, version = d.metadata["Name"], d.version
        if not name:
            continue
        line = name + "==" + str(version)
        direct = d.read_text("direct_url.json")
        if direct:
            direct = json.loads(direct)
            url = re.sub(r"//[^/@]*@", "//", direct.get("url", ""))
            vcs = direct.get("vcs_info")
            if vcs:
                line = "%s @ %s+%s@%s" % (name, vcs.get("vcs"), url, vcs.get("commit_id"))
            elif url:
                line = name + " @ " + url
        packages.append(line)
    except Exception:
        pass
try:
    found = util.find_spec("torch")
    if found and found.origin:
        text = open(os.path.join(os.path.dirname(found.origin), "version.py")).read()
        get = lambda key: (re.search(r"^%s(?:: *[^=]*)? = ['\"]([^'\"]*)" % key, text, re.M) or [0, ""])[1]
        torch, cuda = get("__version__"), get("cuda")
except Exception:
    pass
print(json.dumps({"packages": packages, "torch": torch, "cuda": cuda}))
END
