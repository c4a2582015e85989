"""Begins what dlwb runs in this container: unpacks the code, finds out which host
this is, starts its ranks and exits as they did. The last line that it prints tells
how each rank ended."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile

BASE = os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml")
HERE = os.path.dirname(os.path.abspath(__file__))
WORK = os.path.join(BASE, "dlwb")
PORT = "29500"


def give_up(text):
    print("dlwb: " + text, flush=True)
    try:
        os.makedirs(os.path.join(BASE, "output"), exist_ok=True)
        with open(os.path.join(BASE, "output", "failure"), "w") as f:
            f.write("dlwb: " + text)
    except OSError:
        pass
    sys.exit(125)


def channels():
    """The variables by which scripts of SageMaker find their data."""
    env = {"SM_MODEL_DIR": "model", "SM_OUTPUT_DATA_DIR": "output/data", "SM_OUTPUT_DIR": "output", "SM_INPUT_DIR": "input"}
    env = {name: os.path.join(BASE, path) for name, path in env.items()}
    try:
        with open(os.path.join(BASE, "input/config/inputdataconfig.json")) as f:
            names = sorted(json.load(f))
    except (OSError, ValueError):
        names = []
    names = [n for n in names if n != os.path.basename(HERE)]
    for name in names:
        env["SM_CHANNEL_" + name.upper()] = os.path.join(BASE, "input/data", name)
    env["SM_CHANNELS"] = json.dumps(names)
    return env


def results(paths, code):
    """The files below the paths of the results, each with what changes when it is
    written."""
    found = {}
    for path in paths:
        top = os.path.join(code, path)
        if os.path.isfile(top):
            names = [top]
        else:
            names = [os.path.join(dir, n) for dir, _, files in os.walk(top) for n in files]
            names += [os.path.join(dir, n) for dir, dirs, _ in os.walk(top) for n in dirs if os.path.islink(os.path.join(dir, n))]
        for name in names:
            try:
                s = os.lstat(name)
            except OSError:
                continue
            found[os.path.relpath(name, code)] = (s.st_size, s.st_mtime_ns, s.st_ino)
    return found


def keep(paths, before, code, to):
    """Puts what the run has written below the paths of its results where SageMaker
    takes it to S3."""
    for name, state in results(paths, code).items():
        if before.get(name) == state or name.startswith(".."):
            continue
        here, there = os.path.join(code, name), os.path.join(to, name)
        try:
            os.makedirs(os.path.dirname(there), exist_ok=True)
            shutil.move(here, there)
        except OSError as e:
            if os.path.lexists(here) and os.path.lexists(there):
                os.remove(there)  # half of it is no result
            print("dlwb: the result %s is not kept: %s" % (name, e), flush=True)


def main():
    try:
        with open(os.path.join(BASE, "input/config/resourceconfig.json")) as f:
            config = json.load(f)
    except (OSError, ValueError) as e:
        give_up("this is no container of a training job: %s" % e)
    hosts, host = config["hosts"], config["current_host"]
    hosts = sorted(hosts, key=lambda h: (len(h), h))
    number = hosts.index(host)
    os.makedirs(os.path.join(WORK, "code"), exist_ok=True)
    with tarfile.open(os.path.join(HERE, "payload.tar.gz")) as t:
        if hasattr(tarfile, "tar_filter"):
            t.extractall(WORK, filter="tar")
        else:
            t.extractall(WORK)
    with open(os.path.join(WORK, "node", "%d.json" % number)) as f:
        text = f.read()
    with open(os.path.join(WORK, "env.json")) as f:
        given = json.load(f)  # K=V

    with open(os.path.join(WORK, "keep.json")) as f:
        paths = json.load(f) if number == 0 else []

    def placed(word):
        for i, name in enumerate(hosts):
            word = word.replace("dlwb-replica-%d.invalid" % i, name)
        return word.replace("dlwb-port.invalid", PORT).replace("/opt/ml/dlwb", WORK)

    node = json.loads(text)
    for p in node["procs"]:
        p["env"] = [placed(pair) for pair in p["env"] or []] + given
        # What stands for hosts is placed in dlwb's own words; the script's are left.
        p["argv"] = [placed(w) for w in p["argv"][: p.get("own", 0)]] + p["argv"][p.get("own", 0):]
    env = dict(os.environ)
    env.update(channels())
    env.update({"SM_HOSTS": json.dumps(hosts), "SM_CURRENT_HOST": host, "DLWB_NODE": str(number)})
    nic = config.get("network_interface_name")
    if nic and len(hosts) > 1:
        env.setdefault("NCCL_SOCKET_IFNAME", nic)
        env.setdefault("GLOO_SOCKET_IFNAME", nic)
    kept, code = os.path.join(BASE, "output/data/dlwb"), os.path.join(WORK, "code")
    env["DLWB_RESULTS"] = os.path.join(kept, "node%d" % number)
    for path in ("model", "output/data", env["DLWB_RESULTS"]):
        os.makedirs(os.path.join(BASE, path), exist_ok=True)
    before = results(paths, code)
    ends = os.path.join(WORK, "ends")
    if len(node["procs"]) == 1 and len(node["procs"][0]["ranks"]) == 1 and not node["procs"][0].get("launcher"):
        argv = node["procs"][0]["argv"]
        env.update(pair.split("=", 1) for pair in node["procs"][0]["env"])
    else:
        with open(os.path.join(WORK, "node.json"), "w") as f:
            json.dump(node, f)
        argv = [sys.executable, "-u", os.path.join(WORK, "launch.py"), os.path.join(WORK, "node.json")]
    env.update({"DLWB_ENDS": ends, "PYTHONUNBUFFERED": env.get("PYTHONUNBUFFERED", "1")})
    child = []

    def stop(*_):
        for p in child:
            p.send_signal(signal.SIGTERM)

    signal.signal(signal.SIGTERM, stop)
    try:
        child.append(subprocess.Popen(argv, cwd=code, env=env))
    except OSError as e:
        give_up("start %s: %s" % (argv[0], e))
    ended = child[0].wait()
    keep(paths, before, code, os.path.join(kept, "code"))
    code = 128 - ended if ended < 0 else ended
    if argv[0] != sys.executable or len(argv) < 3 or argv[2] != os.path.join(WORK, "launch.py"):
        said = "%d:%d" % (node["procs"][0]["ranks"][0], code)
    else:
        try:
            with open(ends) as f:
                said = f.read().strip().replace("ranks: ", "")
        except OSError:
            said = ""
    sys.stdout.flush()
    print("[dlwb] ranks: " + said, flush=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
