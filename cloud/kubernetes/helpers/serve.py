"""Runs in a pod of a Job what an engine needs beside its ranks: serve.py NODE.json.
Helpers, such as Ray's head and its workers, have no end of their own. The pods share no
disk: each of the others has a connection to that of node 0, by which it hears when all
are there ("go"), and when the run is over ("over"). Who goes without a word is lost."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import launch

LOOK = 0.1
TELL = 20.0  # after how long it is said what is waited for, and again
LOST = 60.0  # for how long node 0 may be out of reach
STOP = 8.0  # what a helper gets between TERM and KILL
GRACE = float(os.environ.get("DLWB_GRACE") or 20)  # what helpers go on for when their pod is told to end: the ranks have that time
MISSING = 69  # the code of what was not started, as what it needs is not there
NEVER = 3  # that of a look which says that waiting is no use


def say(text, *words):
    launch.write(("dlwb: " + text % words + "\n").encode())


def note(text):
    """Leaves a line to whoever reads how this container ended."""
    try:
        with open(os.environ.get("DLWB_ENDS", "/dev/termination-log"), "a") as f:
            f.write(text + "\n")
    except OSError:
        pass


def kept_alive(c):
    c.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in ("TCP_KEEPIDLE", 20), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 4):
        if hasattr(socket, name):
            c.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def listen(port):
    try:
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    except (OSError, ValueError):  # there is no IPv6 here
        return socket.create_server(("", port))


def word(c):
    """The next line of a connection; empty: it has ended."""
    text = b""
    while not text.endswith(b"\n") and len(text) < 64:
        more = c.recv(1)
        if not more:
            return ""
        text += more
    return text.decode(errors="replace").strip()


class Head:
    """Node 0, to which the others are connected."""

    def __init__(self, port, pods):
        self.pods, self.lock = pods, threading.Lock()
        self.here, self.words = {}, []
        self.go, self.over, self.lost = threading.Event(), threading.Event(), threading.Event()
        if pods > 1:
            self.listener = listen(port)
            threading.Thread(target=self.accept, daemon=True).start()
        self.count()

    def missing(self):
        return ["node%d" % i for i in range(1, self.pods) if i not in self.here]

    def count(self):
        if not self.go.is_set() and not self.missing():
            self.tell("go")
            self.go.set()

    def accept(self):
        while True:
            c, _ = self.listener.accept()
            threading.Thread(target=self.hear, args=(c,), daemon=True).start()

    def hear(self, c):
        number = 0
        try:
            c.settimeout(30)
            said = word(c).split()
            if len(said) != 2 or said[0] != "node" or not said[1].isdigit() or not 0 < int(said[1]) < self.pods:
                return c.close()
            number = int(said[1])
            c.settimeout(None)
            kept_alive(c)
            with self.lock:
                self.here[number] = c
                for text in self.words:
                    c.sendall(text.encode() + b"\n")
                self.count()
            while c.recv(64):
                pass
        except OSError:
            pass
        with self.lock:
            if self.here.get(number) is not c:
                return
            del self.here[number]
        if self.go.is_set() and not self.over.is_set():
            say("node%d is lost: its pod has ended, or can't be reached", number)

    def tell(self, text):
        self.words.append(text)
        for c in list(self.here.values()):
            try:
                c.sendall(text.encode() + b"\n")
            except OSError:
                pass

    def end(self):
        """The others end their helpers now."""
        self.over.set()
        with self.lock:
            self.tell("over")

    def waits(self):
        return "the pods of " + ", ".join(self.missing())


class Other:
    """A node that is connected to node 0."""

    def __init__(self, address, number):
        self.address, self.number, self.why = address, number, ""
        self.go, self.over, self.lost = threading.Event(), threading.Event(), threading.Event()
        threading.Thread(target=self.hear, daemon=True).start()

    def hear(self):
        host, _, port = self.address.rpartition(":")
        seen = None
        while seen is None or time.monotonic() - seen < LOST:
            try:
                with socket.create_connection((host, int(port)), 5) as c:
                    c.settimeout(None)
                    kept_alive(c)
                    c.sendall(b"node %d\n" % self.number)
                    while True:
                        said = word(c)
                        seen = time.monotonic()
                        if said == "go":
                            self.go.set()
                        elif said == "over":
                            return self.over.set()
                        elif not said:
                            break
            except OSError as e:
                self.why = str(e)
            time.sleep(LOOK)
        self.lost.set()

    def end(self):
        pass

    def waits(self):
        return "the pod of node0, or for those that it waits for" + (": " + self.why if self.why else "")


class Pod:
    """What runs here."""

    def __init__(self, node):
        self.number, self.asked, self.helpers, self.fault, self.gone = node["number"], [], {}, "", False
        self.over = False  # the ranks have ended
        self.procs = node["procs"]
        for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(s, self.term)
        port = int(node["head"].rpartition(":")[2])
        self.link = Head(port, node["pods"]) if self.number == 0 else Other(node["head"], self.number)

    def term(self, *_):
        self.asked.append(time.monotonic())

    @property
    def termed(self):
        """When this pod was told to end; None: it was not."""
        return self.asked[0] if self.asked else None

    def gather(self):
        """Waits until all pods are there; false: this one is to end."""
        told = time.monotonic()
        while not self.link.go.wait(LOOK):
            if self.termed:
                return False
            if time.monotonic() - told > TELL:
                told = time.monotonic()
                say("waits for %s", self.link.waits())
        return True

    def environ(self, p):
        env = dict(os.environ)
        env.update(pair.split("=", 1) for pair in p["env"] or [])
        return env

    def help(self, p):
        try:
            # Of a group of its own, which no signal to that of the ranks reaches.
            self.helpers[subprocess.Popen(p["argv"], env=self.environ(p), stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=launch.bound())] = p["name"]
        except OSError as e:
            self.fail("%s can't be started on node%d: %s" % (p["name"], self.number, e))

    def fail(self, text):
        if not self.fault:
            self.fault = text
            say("%s", text)
            note("helper: " + text)

    def dead(self):
        """Whether a helper has ended before it was told to. In a pod that is to end that is
        no fault of it: the run is about to be over."""
        if self.fault or self.gone:
            return True
        for h, name in self.helpers.items():
            # Ray ends by itself when its head does, and that may be before the word of it.
            if h.poll() is not None and not self.over and not self.link.over.wait(5 if self.number else 0):
                text = "%s on node%d ended with code %d" % (name, self.number, launch.shell(h.returncode))
                if self.termed:
                    self.gone = True
                    say("%s", text)
                else:
                    self.fail(text + ": the log of its launcher says why")
        return bool(self.fault or self.gone)

    def ready(self, p):
        """Waits for what a process needs. Says what is missing where it does not come."""
        a = p.get("after")
        if not a:
            return ""
        told, last, until = time.monotonic(), "", time.monotonic() + a["limit"]
        while True:
            try:
                look = subprocess.run(a["argv"], env=self.environ(p), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=30)
                code, said = look.returncode, look.stdout[-4096:].decode(errors="replace").strip()
            except subprocess.TimeoutExpired:
                code, said = 1, "a look took more than 30 s"
            except OSError as e:
                return "can't look for %s: %s" % (a["what"], e)
            if code == 0:
                return ""
            if self.termed or self.link.lost.is_set() or self.link.over.is_set() or self.dead():
                return "the run is ended before there is %s: %s" % (a["what"], said)
            if code == NEVER:
                return "there is not all of %s: %s" % (a["what"], said)
            if time.monotonic() > until:
                return "waited %d s for %s: %s" % (a["limit"], a["what"], said)
            if said != last and time.monotonic() - told > TELL:
                told, last = time.monotonic(), said
                say("waiting for %s: %s", a["what"], said)
            time.sleep(0.5)

    def serve(self):
        """Helps until the ranks elsewhere have ended."""
        while not self.link.over.wait(LOOK):
            if self.dead():
                if not self.fault:
                    return 128 + signal.SIGTERM
                return next((launch.shell(h.returncode) for h in self.helpers if h.returncode), 1)
            if self.termed and time.monotonic() - self.termed > GRACE:
                return 128 + signal.SIGTERM
            if self.link.lost.is_set():
                if self.termed:
                    return 128 + signal.SIGTERM
                self.fail("node%d has lost node0: %s" % (self.number, self.link.why or "its pod has ended"))
                return 1
        return 0

    def train(self, ranks):
        """Runs the ranks to their end. They end when a helper of theirs does."""
        def watch():
            while not self.over and not self.dead():
                time.sleep(LOOK)
            if not self.over:
                if not self.termed:
                    os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(GRACE)
                if not self.over:
                    os._exit(self.code({}) or 128 + signal.SIGTERM)

        threading.Thread(target=watch, daemon=True).start()
        codes = launch.run([(p["ranks"][0], p["argv"], self.environ(p)) for p in ranks], asked=self.asked)
        self.over = True
        if self.asked and not self.fault and any(c not in (0, 128 + signal.SIGTERM) for c in codes.values()):
            note("told: this pod was told to end")  # a driver of Ray exits with 15 then
        return codes

    def code(self, codes):
        """The code of this pod, with a word for each rank."""
        if codes:
            note("ranks: " + " ".join("%d:%d" % pair for pair in codes.items()))
        return next((launch.shell(c) for c in codes.values() if c), 1 if self.fault else 0)

    def stop(self):
        self.over = True
        for h in self.helpers:
            if h.poll() is None:
                h.terminate()
        until = time.monotonic() + STOP
        for h in self.helpers:
            try:
                h.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                h.kill()

    def run(self):
        if not self.gather():
            return 128 + signal.SIGTERM
        ranks = []
        for p in self.procs:
            missing = self.ready(p)
            if missing and not p["helper"]:
                launch.write(b"[rank%d] dlwb: %s\n" % (p["ranks"][0], missing.replace("\n", "; ").encode()))
                return self.code({p["ranks"][0]: launch.recorded(p["ranks"][0], 128 + signal.SIGTERM if self.termed else MISSING)})
            if missing:
                if self.link.over.is_set():
                    return 0
                if self.termed:
                    return 128 + signal.SIGTERM
                self.fail("%s on node%d was not started: %s" % (p["name"], self.number, missing))
                return MISSING
            if p["helper"]:
                self.help(p)
            else:
                ranks.append(p)
        return self.code(self.train(ranks)) if ranks else self.serve()


def main(path):
    try:
        import resource

        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (65536 if most == resource.RLIM_INFINITY else min(65536, most), most))
    except (ImportError, ValueError, OSError):
        pass
    with open(path) as f:
        pod = Pod(json.load(f))
    code = pod.run()
    pod.link.end()  # before this container ends: that ends the others without a word
    pod.stop()
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1])
