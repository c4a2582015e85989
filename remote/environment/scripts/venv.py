# Makes or updates a virtual environment. Its only argument is a JSON object:
#   dir, key, base_key  the directory, and what it should be made of
#   content or upload   requirements, base64; or a file of that, to be removed
#   system              whether the base's own packages are seen inside
#   uv                  the uv that installs; "": pip does
#   check, probe        check.py and probe.py, which the new interpreter runs
#   look                what probe.sh would keep (see there): file, key, watch,
#                       said, stamp (a script) and its variables; or null
#   force, limit        make it anew; seconds for everything (0: no limit)
#   pause               end before pip is needed, and tell what kind of node this is
#   made                an earlier call, which paused, has made it anew
#   wheels, fetch       a directory, or ""; whether the wheels have yet to be
#                       fetched into it: then "+" and a JSON object tell of them
# It prints "|text" for news, "." while it waits, and at last "=" and a JSON
# object. When nobody listens any more it ends what it started.
import base64
import collections
import configparser
import fcntl
import glob
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import time
import venv
import zipfile

job = json.loads(sys.argv[1])
home = os.path.expanduser("~")
where = os.path.join(home, job["dir"])
started = time.time()
child = None
printed = 0
printing = threading.Lock()


class Failed(Exception):
    def __init__(self, step, code, lines, command=()):
        super().__init__(step)
        self.answer = {"ok": False, "step": step, "code": code, "lines": lines, "command": list(command)}


def end_child():
    if child is None or child.poll() is not None:
        return
    for sig, patience in ((signal.SIGTERM, 2), (signal.SIGKILL, 2)):
        try:
            os.killpg(child.pid, sig)
            child.wait(patience)
            return
        except (OSError, subprocess.TimeoutExpired):
            pass


def say(text):
    try:
        with printing:
            sys.stdout.write(text + "\n")
            sys.stdout.flush()
    except OSError:
        end_child()
        os._exit(1)


def overdue():
    return job["limit"] > 0 and time.time() - started > job["limit"]


def watch():
    while True:
        time.sleep(1)
        say(".")
        if overdue():
            end_child()


def stop(signum, frame):
    end_child()
    os._exit(128 + signum)


def run(step, command):
    global child, printed
    env = dict(os.environ, PIP_USER="0", PYTHONUNBUFFERED="1")
    env.pop("PYTHONHOME", None)
    if command[0] == job["uv"]:
        env.update(like_pip(env))
    last = collections.deque(maxlen=30)
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, env=env, start_new_session=True,
                             cwd=os.path.dirname(where))  # a json.py at home would be imported
    for raw in child.stdout:
        line = raw.decode("utf-8", "replace").rstrip()[:400]
        if line:
            last.append(line)
            printed += 1
            if printed < 1500:
                say("|" + line)
    code = child.wait()
    if code != 0:
        raise Failed("limit" if overdue() else step, code, list(last), command)


def read(name):
    try:
        with open(os.path.join(where, name)) as f:
            return f.read().strip()
    except OSError:
        return ""


def write(name, text):
    path = os.path.join(where, name)
    fd = os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "wb") as f:
        f.write(text)
    os.rename(path + ".new", path)
    return path


def requirements():
    if "upload" not in job:
        return base64.b64decode(job["content"])
    path = os.path.join(home, job["upload"])
    with open(path, "rb") as f:
        text = f.read()
    os.unlink(path)
    return base64.b64decode(text)


def python():
    return os.path.join(where, "bin", "python")


def pip_settings(env):
    """What pip was told about where packages come from: by files, then by the
    environment, as pip reads them."""
    files = [env.get("PIP_CONFIG_FILE")] if env.get("PIP_CONFIG_FILE") else [
        "/etc/xdg/pip/pip.conf", "/etc/pip.conf", os.path.join(home, ".pip", "pip.conf"),
        os.path.join(env.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "pip", "pip.conf"),
        os.path.join(sys.prefix, "pip.conf")]
    told = {}
    for name in files:
        parser = configparser.RawConfigParser()
        try:
            parser.read(name)
        except (configparser.Error, UnicodeDecodeError):
            continue
        for section in ("global", "install"):
            if parser.has_section(section):
                told.update(parser.items(section))
    told.update((k[4:].lower().replace("_", "-"), v) for k, v in env.items() if k.startswith("PIP_") and v)
    return told


def like_pip(env):
    """uv does not read pip's settings. A node that reaches no index but the one
    that they name would be out of reach for it."""
    told = pip_settings(env)
    new = {"UV_NO_PROGRESS": "1", "NO_COLOR": "1", "UV_PYTHON_DOWNLOADS": "never", "UV_HTTP_TIMEOUT": "30"}
    for ours, theirs in (("index-url", "UV_DEFAULT_INDEX"), ("extra-index-url", "UV_INDEX"), ("cert", "SSL_CERT_FILE"),
                         ("trusted-host", "UV_INSECURE_HOST"), ("proxy", "ALL_PROXY")):
        if told.get(ours):
            new[theirs] = " ".join(told[ours].split())
    if told.get("find-links"):
        new["UV_FIND_LINKS"] = ",".join(told["find-links"].split())
    if str(told.get("no-index", "")).lower() in ("1", "true", "yes", "on"):
        new["UV_NO_INDEX"] = "1"
    if str(told.get("no-cache-dir", "")).lower() in ("1", "true", "yes", "on"):
        new["UV_NO_CACHE"] = "1"
    return {k: v for k, v in new.items() if not env.get(k)}


def create():
    if os.path.lexists(where):
        shutil.rmtree(where)
    venv.EnvBuilder(system_site_packages=job["system"], symlinks=True).create(where)
    if job["system"] and sys.prefix != sys.base_prefix:
        # The base is a virtual environment itself: the new one would see
        # only what is below both.
        with open(os.path.join(packages(), "_dlwb_base.pth"), "w") as f:
            f.write(sysconfig.get_paths()["purelib"] + "\n")
    if not has_pip() and not job["uv"]:
        run("venv", [python(), "-m", "ensurepip", "--upgrade", "--default-pip"])
    write(".dlwb-base", job["base_key"].encode())


def packages():
    return os.path.join(where, "lib", "python%d.%d" % sys.version_info[:2], "site-packages")


def has_pip():
    """Puts pip where ensurepip would, without the seconds that it takes: the
    base's own is used where it can be seen, else its wheels are unpacked."""
    seen = job["system"] and any(os.path.isfile(os.path.join(p, "pip", "__main__.py")) for p in sys.path if p)
    if not seen:
        import ensurepip
        names = ["pip"] + (["setuptools"] if sys.version_info < (3, 12) else [])
        for name in names:
            places = [os.path.join(os.path.dirname(ensurepip.__file__), "_bundled"),
                      sysconfig.get_config_var("WHEEL_PKG_DIR"), "/usr/share/python-wheels"]
            wheels = [w for p in places if p for w in sorted(glob.glob(os.path.join(p, name + "-*.whl")))]
            if not wheels:
                return False
            with zipfile.ZipFile(wheels[-1]) as wheel:
                wheel.extractall(packages())
            for info in glob.glob(os.path.join(packages(), name + "-*.dist-info")):
                with open(os.path.join(info, "INSTALLER"), "w") as f:
                    f.write("pip\n")
    for name in ("pip", "pip3", "pip%d.%d" % sys.version_info[:2]):
        path = os.path.join(where, "bin", name)
        with open(path, "w") as f:
            # The path of the interpreter may be too long for #!, or have spaces.
            f.write("#!/bin/sh\n'''exec' \"%s\" \"$0\" \"$@\"\n' '''\nimport sys\n"
                    "from pip._internal.cli.main import main\nsys.exit(main())\n" % python())
        os.chmod(path, 0o755)
    return True


def tell(code, argument=(), said=""):
    """Has the new interpreter run a script of ours, and gives what it says."""
    env = dict(os.environ)
    env.pop("PYTHONHOME", None)
    done = subprocess.run([python(), "-c", code] + list(argument), input=said.encode(), stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, env=env, cwd=os.path.dirname(where), timeout=60)
    return [line for line in done.stdout.decode("utf-8", "replace").splitlines() if line.startswith("dlwb\t")]


def describe(check=None):
    """What the new interpreter is; with check, also whether it has everything."""
    lines = []
    code = job["probe"] if check is None else "import sys\nif sys.path and sys.path[0] == '': del sys.path[0]\n" + job["check"] + "\n" + job["probe"]
    try:
        lines = tell(code, ["venv", python()], (check or b"").decode("utf-8", "replace"))
    except (OSError, subprocess.SubprocessError):
        pass
    return lines


def satisfied(lines):
    for line in lines:
        if line.startswith("dlwb\tcheck\t"):
            return json.loads(line.split("\t", 2)[2]).get("left") == []
    return False



def installer(*options):
    """The command that installs. pip is told to be quiet in ways uv does not know."""
    if job["uv"]:
        return [job["uv"], "pip", "install", "--python", python()] + list(options)
    return [python(), "-m", "pip", "install"] + QUIET + list(options)


QUIET = ["--disable-pip-version-check", "--no-input", "--progress-bar", "off", "--retries", "1", "--timeout", "10"]

# "pip wheel" fetches also what is installed already: all of PyTorch for a small
# package that needs it. "pip install" does not; this is its way to look at it.
# Should pip's inside change, this fails, and every node installs by itself.
FETCH = """
import sys
from pip._internal.cli.main import main
from pip._internal.cli.req_command import RequirementCommand
resolver = RequirementCommand.make_resolver
RequirementCommand.make_resolver = staticmethod(lambda *a, **k: resolver(*a, **dict(k, ignore_installed=False)))
sys.exit(main(["wheel"] + sys.argv[1:]))
"""


def install(text):
    """Installs what is missing; gives what the interpreter says of itself, or
    None where it has to pause."""
    if os.path.exists(os.path.join(where, ".dlwb-done")):
        os.unlink(os.path.join(where, ".dlwb-done"))
    mark = b"#dlwb-constraint: "
    limits = [line[len(mark):] for line in text.splitlines(True) if line.startswith(mark)]
    if limits:
        text += b"\n-c " + write("constraints.txt", b"".join(limits)).encode() + b"\n"
    file = write("requirements.txt", text)
    lines = describe(text)
    if satisfied(lines):
        say("|Everything is there already")
    elif job["pause"]:
        return None
    else:
        if not (job["wheels"] and from_wheels(text, file)):
            run("pip", installer("-r", file))
        lines = describe()
    write(".dlwb-done", job["key"].encode())
    return lines


def from_wheels(text, file):
    """Installs from the wheels that one node fetches for several; false where
    that can't be done."""
    wheels = os.path.join(home, job["wheels"])
    # A requirements file may name an index in spite of --no-index.
    needs = write("requirements.wheels", b"".join(
        line for line in text.splitlines(True) if not line.lstrip().startswith(b"-") or b"--hash" in line))
    try:
        if job["fetch"]:
            fetch(wheels, file)
        run("pip", installer("--no-index", "--find-links", wheels, "-r", needs))
        return True
    except (Failed, OSError) as error:
        if isinstance(error, Failed) and error.answer["step"] == "limit":
            raise
        say("|Not from wheels that are shared, but from the index")
        shutil.rmtree(wheels, ignore_errors=True)  # the disk may be full of them
        return False
    finally:
        os.unlink(needs)


def fetch(wheels, file):
    sizes = []
    try:
        shutil.rmtree(wheels, ignore_errors=True)
        os.mkdir(wheels, 0o700)
        run("pip", [python(), "-c", FETCH] + QUIET + ["--wheel-dir", wheels, "-r", file])
        sizes = [os.path.getsize(os.path.join(wheels, name)) for name in os.listdir(wheels)]
    finally:
        say("+" + json.dumps({"count": len(sizes), "bytes": sum(sizes)}))


def kind():
    """What has to be alike where wheels are to be of use, also those that were
    built here."""
    system = [str(job["system"])]
    try:
        with open("/etc/os-release") as f:
            system += sorted(line.strip() for line in f if line.startswith(("ID=", "VERSION_ID=")))
    except OSError:
        pass
    return " ".join([sys.version, sysconfig.get_platform(), platform.machine()] + list(platform.libc_ver()) + system)


def forget_old_wheels():
    """Removes those of a dlwb that was killed; younger ones may be in use."""
    for old in glob.glob(os.path.join(glob.escape(os.path.dirname(where)), ".wheels.*")):
        try:
            if time.time() - os.stat(old).st_mtime > 2 * 3600:
                shutil.rmtree(old, ignore_errors=True)
        except OSError:
            pass


def keep(lines):
    """Keeps what probe.sh would find, so that the next look starts no Python."""
    look = job["look"]
    own = [l for l in lines if not l.startswith("dlwb\tcheck\t")]
    watch = [l.split("\t", 2)[2] for l in own if l.startswith("dlwb\twatch\t")]
    if not look or not watch:
        return
    watch = ":" + ":".join(look["watch"] + watch)
    env = dict(os.environ, wanted=look["wanted"], dirs=look["dirs"], venv=job["dir"], watch=watch)
    stamp = subprocess.run(["sh", "-c", look["stamp"] + "\nstamp"], env=env, cwd=home, stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL).stdout.decode("utf-8", "surrogateescape")
    if stamp:
        said = "".join(l + "\n" for l in look["said"] + own)
        write(".dlwb-look", "\n".join((look["key"], watch, stamp, "", said)).encode("utf-8", "surrogateescape"))


def wait_for(lock):
    """Nodes may share one home directory, and must not build in it at once."""
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if overdue():
                raise Failed("limit", 1, ["another node is still installing in the same directory"])
            time.sleep(0.2)
        except OSError:
            return None  # some network file systems can't lock


def main():
    text = requirements()
    os.makedirs(os.path.dirname(where), exist_ok=True)
    lock = open(os.path.join(os.path.dirname(where), ".venv.lock"), "w")
    wait_for(lock)
    if read(".dlwb-done") == job["key"] and not job["force"]:
        return {"ok": True, "skipped": True}
    forget_old_wheels()
    anew = job["force"] or read(".dlwb-base") != job["base_key"]
    made = anew or job["made"]
    try:
        if anew:
            create()
        lines = install(text)
        if lines is None:
            return {"ok": True, "kind": kind(), "made": made}
        keep(lines)
    except BaseException:
        if made:
            shutil.rmtree(where, ignore_errors=True)  # nothing half made stays
        raise
    return {"ok": True, "said": lines}


for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, stop)
threading.Thread(target=watch, daemon=True).start()
try:
    answer = main()
except Failed as failed:
    answer = failed.answer
except OSError as error:
    answer = {"ok": False, "step": "files", "code": 1, "lines": [str(error)], "command": []}
say("=" + json.dumps(answer))
