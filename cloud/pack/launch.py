"""Runs several ranks in one container, whose log is one. Each line that a rank
prints gets its rank in front: "[rank3] text", or "[rank3]+ text" where the line
goes on in the next piece. With DLWB_TEXT, for whoever takes text alone, a byte that
is none becomes a character of a private area (U+F700 and the byte). As rank.py does, it is also what a launcher such as
torchrun starts in place of each rank: launch.py --rank WORDS...
"""

import json
import os
import re
import selectors
import signal
import socket
import subprocess
import sys
import time

PIECE = 3000  # with its tag less than PIPE_BUF: pieces of several ranks do not mix
QUIET = 0.3  # after which a piece without an end is passed on: a progress bar
GRACE = 5.0  # what the others get when a rank has failed
WORK = os.path.dirname(os.path.abspath(__file__))


def passable(text):
    """What a reader of text gives back as it is."""
    said = text.decode(errors="surrogateescape")
    if re.search("[\r\ud800-\udfff\uf700-\uf7ff]", said):
        said = re.sub("[\r\ud800-\udfff\uf700-\uf7ff]", lambda m: "".join(
            chr(0xF700 + b) for b in m.group().encode(errors="surrogateescape")), said)
    return said.encode()


def write(text):
    if "DLWB_TEXT" in os.environ:
        text = passable(text)
    while text:
        text = text[os.write(1, text):]


class Tagger:
    """Passes on what comes from a rank, piece by piece."""

    def __init__(self, rank):
        self.line, self.part = b"[rank%d] " % rank, b"[rank%d]+ " % rank
        self.held, self.since = b"", 0.0

    def feed(self, data):
        self.held += data
        *lines, self.held = self.held.split(b"\n")
        for line in lines:
            self.cut(line)
            write(self.line + self.cutting + b"\n")
        if len(self.held) > PIECE:
            self.cut(self.held)
            self.held = self.cutting
        self.since = time.monotonic()

    def cut(self, text):
        while len(text) > PIECE:
            write(self.part + text[:PIECE] + b"\n")
            text = text[PIECE:]
        self.cutting = text

    def rest(self, force=False):
        if self.held and (force or time.monotonic() - self.since > QUIET):
            write(self.part + self.held + b"\n")
            self.held = b""


def recorded(rank, code):
    """Notes how a rank ended: 128+n after signal n, as a shell says it."""
    code = 128 - code if code < 0 else code
    path = os.path.join(WORK, "exit-%d" % rank)
    with open(path + ".tmp", "w") as f:
        f.write("%d" % code)
    os.replace(path + ".tmp", path)
    return code


def started_again(rank):
    """Of a rank that its launcher starts once more, how it ended before is no end."""
    path = os.path.join(WORK, "exit-%d" % rank)
    try:
        with open(path) as f:
            code = f.read()
        os.remove(path)
    except OSError:
        return
    write(b"dlwb: rank %d ended with %s and is started again\n" % (rank, code.encode()))


def rank_here():
    """The rank by the word of the launcher. One that deals out the ranks as it likes
    says DLWB_RANK_BASE: with the local rank that is the place in which it runs."""
    try:
        return int(os.environ["DLWB_RANK_BASE"]) + int(os.environ["LOCAL_RANK"])
    except (KeyError, ValueError):
        return int(os.environ[os.environ.get("DLWB_RANK_VAR", "RANK")])


def bound():
    """Has the kernel kill a rank when this process is killed. A launcher that starts
    its ranks again kills what does not end in time, and knows of this process alone."""
    try:
        import ctypes

        prctl = ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):  # no Linux, or a Python without it
        return None
    return lambda: prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def await_head(argv):
    """Waits for the agent of torchrun that opens the store by which the others find
    each other. They wait a minute for it themselves, and of several containers one may
    come much later than the others, as its machine has to fetch the image."""
    if "--rdzv_conf=is_host=false" not in argv:
        return
    at = next(w for w in argv if w.startswith("--rdzv_endpoint=")).partition("=")[2]
    host, _, port = at.rpartition(":")
    told = time.monotonic()
    while True:
        try:
            return socket.create_connection((host.strip("[]"), int(port)), 5).close()
        except OSError as e:
            if time.monotonic() - told > 20:
                told = time.monotonic()
                write(b"dlwb: waits for torchrun of node0 at %s: %s\n" % (at.encode(), str(e).encode()))
        time.sleep(0.2)


def run(procs, first=None, asked=None):
    """Runs processes to their end: (rank or None, argv, env). first is done in each
    rank before it begins; asked has something in it once they are to end."""
    asked, told = [] if asked is None else asked, set()
    watch, running, codes = selectors.DefaultSelector(), {}, {}
    failed, stopping = None, [None]

    def stop(*_):
        asked.append(time.monotonic())
        for p in list(running):
            told.add(p)
            if p.poll() is None:
                p.send_signal(signal.SIGTERM)

    for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(s, stop)
    for rank, argv, env in procs:
        try:
            if rank is None:
                p = subprocess.Popen(argv, env=env)
            else:
                p = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0, preexec_fn=first)
                watch.register(p.stdout, selectors.EVENT_READ, Tagger(rank))
        except OSError as e:
            write(b"dlwb: start %s: %s\n" % (argv[0].encode(), str(e).encode()))
            codes[rank] = 127 if rank is None else recorded(rank, 127)
            failed = failed or time.monotonic()
            continue
        running[p] = rank
    for p in list(running):  # it was asked while they were being started
        if asked and p not in told:
            p.send_signal(signal.SIGTERM)
    while running:
        for key, _ in watch.select(0.1) if watch.get_map() else [time.sleep(0.1)] and []:
            data = os.read(key.fd, 65536)
            if data:
                key.data.feed(data)
            else:
                key.data.rest(True)
                watch.unregister(key.fileobj)
        for key in list(watch.get_map().values()):
            key.data.rest()
        for p in list(running):
            if p.poll() is None:
                continue
            rank = running.pop(p)
            codes[rank] = p.returncode if rank is None else recorded(rank, p.returncode)
            if codes[rank] != 0 and failed is None:
                failed = time.monotonic()
        if failed is not None and stopping[0] is None and time.monotonic() - failed > GRACE:
            stopping[0] = time.monotonic()
            stop()
        if stopping[0] is not None and time.monotonic() - stopping[0] > GRACE:
            for p in running:
                p.kill()
    drain(watch)
    return codes


def drain(watch):
    """Reads what the pipes still hold; what a left-over child prints later is lost."""
    until = time.monotonic() + 1
    while watch.get_map() and time.monotonic() < until:
        for key, _ in watch.select(0.1):
            data = os.read(key.fd, 65536)
            if data:
                key.data.feed(data)
            else:
                watch.unregister(key.fileobj)
            key.data.rest(not data)
    for key in watch.get_map().values():
        key.data.rest(True)


def mend(argv, env):
    """Works around PyTorch 1.13 on Python 3.11 and later, whose agent crashes on being
    told to redirect nothing: it looks for that value by iterating over a flag type,
    which leaves it out since. A map that names only local rank 9 has the others take the
    default in another way. Which PyTorch a container has is known only in it."""
    if "torch.distributed.run" not in argv:
        return
    ask = "import sys, importlib.metadata as m; print(sys.version_info >= (3, 11) and m.version('torch'))"
    try:
        has = subprocess.run([argv[0], "-c", ask], env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60).stdout
    except (OSError, subprocess.SubprocessError):
        return
    if has.startswith(b"1."):
        for key in "PET_REDIRECTS", "PET_TEE":
            env.setdefault(key, "9:1")


def shell(code):
    return 128 - code if code < 0 else code


def main(argv):
    if argv[1] == "--rank":
        rank = rank_here()
        started_again(rank)
        sys.exit(run([(rank, argv[2:], dict(os.environ))], bound())[rank])
    with open(argv[1]) as f:
        node = json.load(f)
    procs, ranks = [], []
    for p in node["procs"]:
        env = dict(os.environ)
        env.update(pair.split("=", 1) for pair in p["env"] or [])
        if p.get("launcher"):
            mend(p["argv"], env)
            await_head(p["argv"])
        ranks += p["ranks"]
        procs.append((None if p.get("launcher") else p["ranks"][0], p["argv"], env))
    codes = run(procs)
    said = []
    for rank in ranks:
        try:
            with open(os.path.join(WORK, "exit-%d" % rank)) as f:
                said.append("%d:%s" % (rank, f.read()))
        except OSError:
            pass
    try:
        with open(os.environ.get("DLWB_ENDS", "/dev/termination-log"), "a") as f:
            f.write("ranks: " + " ".join(said) + "\n")
    except OSError:
        pass
    sys.exit(next((shell(c) for c in codes.values() if c), 0))


if __name__ == "__main__":
    main(sys.argv)
