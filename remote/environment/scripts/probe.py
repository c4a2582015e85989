# Describes the interpreter that runs it, as one line. It must not import
# torch, which takes a second or more, and must run on any Python 3.
import sys

if sys.path and sys.path[0] == "":
    del sys.path[0]  # a torch.py in the home directory is no PyTorch

import json
import os
from importlib.util import find_spec


def spec(name):
    try:
        found = find_spec(name)
    except Exception:
        return None
    # Without an origin it is some directory of that name.
    return found if found and found.origin else None


def version(package):
    try:
        from importlib.metadata import version
        return version(package)
    except Exception:
        return ""


def read(*path):
    try:
        with open(os.path.join(*path), encoding="utf-8", errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def debian(package):
    # What dpkg-query says, without its process: that would take as long as all
    # the rest. The format is that of deb-control(5).
    rest = read("/var/lib/dpkg/status").partition("\nPackage: %s\n" % package)[2]
    for line in rest.split("\n\n", 1)[0].splitlines():
        if line.startswith("Version: "):
            return line[len("Version: "):].split(":")[-1].split("+")[0].split("-")[0]
    return ""


def torch():
    found = spec("torch")
    if not found:
        return "", False
    home = os.path.dirname(found.origin)
    number = ""
    for line in read(home, "version.py").splitlines():
        if line.startswith("__version__"):
            number = line.split("=")[1].strip().strip("'\"")
    if "a0" in number and home.startswith("/usr/lib/python3/"):
        # Debian builds 1.13.1 from an archive without tags, so that it
        # believes to be 1.13.0a0.
        number = debian("python3-torch") or number
    source = read(home, "distributed", "_shard", "sharded_tensor", "metadata.py")
    fault = sys.version_info >= (3, 11) and "default=TensorProperties()" in source
    return number or version("torch") or "of unknown version", fault


number, fault = torch()
print("dlwb\tpython\t%s\t%s\t%s" % (sys.argv[1], sys.argv[2], json.dumps({
    "exe": sys.executable or sys.argv[2],
    "version": "%d.%d.%d" % sys.version_info[:3],
    "torch": number,
    "fault": fault,
    "venv": bool(spec("venv") and spec("ensurepip")),
    "modules": bool(spec("venv")),
    "packages": {name: version(name) for name in sys.argv[3:]},
})))
# What the answer hangs on: a package that comes or goes changes its directory.
places = [p for p in sys.path if os.path.isdir(p)]
if not any(":" in p or "\n" in p for p in places):
    print("dlwb\twatch\t%s" % ":".join([sys.executable or sys.argv[2]] + places))
