"""Runs the scenarios of frameworks.py in a pipe and in a terminal, and keeps what they print with its truth.

usage: corpus.py FOLDER [NAME ...]: writes FOLDER/NAME-pipe.log, NAME-pty.log and their .expect.json.
What a scenario needs is installed into a virtual environment below the user's cache directory, in the versions of
requirements.txt; CORPUS_PYTHON names an interpreter that has everything already.
"""
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT = 600  # seconds for one training, with the import of its framework


def interpreter():
    given = os.environ.get("CORPUS_PYTHON")
    if given:
        return given
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    home = os.path.join(cache, "dlwb", "corpus")
    python = os.path.join(home, "bin", "python")
    wanted = open(os.path.join(HERE, "requirements.txt")).read()
    stamp = os.path.join(home, "requirements.txt")
    if not os.path.exists(stamp) or open(stamp).read() != wanted:
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "-r", os.path.join(HERE, "requirements.txt")], check=True)
        with open(stamp, "w") as f:
            f.write(wanted)
    return python


def run(command, env, terminal):
    """What a command prints to both of its outputs, and its exit status."""
    if not terminal:
        p = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT)
        return p.stdout, p.returncode
    here, there = pty.openpty()
    fcntl.ioctl(there, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    p = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=there, stderr=there, start_new_session=True)
    os.close(there)
    out = bytearray()
    while True:
        try:
            part = os.read(here, 65536)
        except OSError:  # Linux tells so that nobody has the terminal any more
            break
        if not part:
            break
        out += part
    os.close(here)
    return bytes(out), p.wait(LIMIT)


def main():
    folder, names = sys.argv[1], sys.argv[2:]
    python = interpreter()
    sys.path.insert(0, HERE)
    from frameworks import SCENARIOS
    os.makedirs(folder, exist_ok=True)
    failed = 0
    for name in names or SCENARIOS:
        for way in ("pipe", "pty"):
            truth = os.path.join(folder, f".{name}.truth")
            env = dict(os.environ, CORPUS_TRUTH=truth, PYTHONUNBUFFERED="1", TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1", TERM="xterm-256color")
            out, status = run([python, os.path.join(HERE, "frameworks.py"), name], env, way == "pty")
            if status != 0 or not os.path.exists(truth):
                failed += 1
                print(f"{name} in a {way}: exit status {status}: {out[-600:].decode(errors='replace')}")
                continue
            expect = json.load(open(truth))
            os.remove(truth)
            expect.update(file=f"{name}-{way}.log", family=name)
            with open(os.path.join(folder, f"{name}-{way}.log"), "wb") as f:
                # Where a package is published and who ran this is nobody's metric.
                out = re.sub(rb"https://[a-z.]+/project/", b"https://example.org/project/", out)
                f.write(out.replace(os.path.expanduser("~").encode(), b"/home/user"))
            with open(os.path.join(folder, f"{name}-{way}.expect.json"), "w") as f:
                json.dump(expect, f)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
