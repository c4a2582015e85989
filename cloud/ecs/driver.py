"""Drives a run of dlwb as a job of Ray: starts what each replica runs on a machine of
its own, and passes on what they print, each line with its rank in front; or, where the
script is a driver of Ray itself, runs that here, beside Ray's head. Ray's log is
text: a byte that would not come through it as it is becomes a character of a private
area (U+F700 and the byte). The last line tells how each rank ended."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
GRACE = 5.0  # what the other machines get when one has failed


def passable(line):
    """A line that Ray's reader gives back as it is."""
    try:
        text = line.decode()
    except UnicodeDecodeError:
        text = line.decode(errors="surrogateescape")
    if re.search("[\r\ud800-\udfff\uf700-\uf7ff]", text):
        text = re.sub("[\r\ud800-\udfff\uf700-\uf7ff]", lambda m: "".join(
            chr(0xF700 + b) for b in m.group().encode(errors="surrogateescape")), text)
    return text.encode()


class Screen:
    """What the driver prints: whole lines, from several machines."""

    def __init__(self):
        self.lock, self.ends = threading.Lock(), {}

    def lines(self, number, data):
        out = b""
        for line in data.split(b"\n"):
            if not re.match(rb"\[rank[0-9]+\]\+? ", line):
                line = b"[node%d] " % number + line
            out += passable(line) + b"\n"
        with self.lock:
            while out:
                out = out[os.write(1, out):]

    def ended(self, text):
        with self.lock:
            for pair in text.split():
                rank, _, code = pair.partition(":")
                self.ends[int(rank)] = int(code)


class Replica:
    """Runs on the machine of a replica."""

    def __init__(self):
        self.child, self.stopped = None, False
        self.work = tempfile.mkdtemp(prefix="dlwb-")
        self.code = os.getcwd()

    def facts(self, ip):
        with socket.socket() as s:
            s.bind(("", 0))
            return {"ip": ip, "port": str(s.getsockname()[1])}

    def link(self, links):
        for path, target in (links or {}).items():
            try:
                os.makedirs(os.path.dirname(os.path.join(self.code, path)), exist_ok=True)
                os.symlink(target, os.path.join(self.code, path))
            except FileExistsError:
                pass

    def run(self, node, number, hosts, port, given, links):
        self.link(links)
        shutil.copy(os.path.join(HERE, "launch.py"), self.work)

        def placed(word):
            for i, host in enumerate(hosts):
                word = word.replace("dlwb-replica-%d.invalid" % i, host)
            return word.replace("dlwb-port.invalid", port).replace("dlwb-work.invalid", self.work)

        for p in node["procs"]:
            p["env"] = [placed(pair) for pair in p["env"] or []] + given
            p["argv"] = [placed(w) for w in p["argv"][:p.get("own", 0)]] + p["argv"][p.get("own", 0):]
        with open(os.path.join(self.work, "node.json"), "w") as f:
            json.dump(node, f)
        ends = os.path.join(self.work, "ends")
        env = dict(os.environ, DLWB_ENDS=ends, DLWB_NODE=str(number))
        env.setdefault("PYTHONUNBUFFERED", "1")
        python = [sys.executable, "-u", os.path.join(self.work, "launch.py"), os.path.join(self.work, "node.json")]
        if not self.stopped:
            self.child = subprocess.Popen(python, cwd=self.code, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0)
            held = b""
            while True:
                data = os.read(self.child.stdout.fileno(), 65536)
                if not data:
                    break
                lines, found, rest = (held + data).rpartition(b"\n")
                held = rest
                if found:
                    yield lines
            if held:
                yield held
            code = self.child.wait()
        else:
            code = -signal.SIGTERM
        said = ""
        if os.path.exists(ends):
            with open(ends) as f:
                said = f.read().strip().replace("ranks: ", "")
        shutil.rmtree(self.work, ignore_errors=True)
        yield {"code": 128 - code if code < 0 else code, "ends": said}

    def stop(self):
        self.stopped = True
        if self.child is not None and self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)


class Far:
    """A replica on another machine, as an actor of Ray."""

    def __init__(self, ray, order):
        kind = ray.remote(Actor)
        self.ray = ray
        self.actor = kind.options(num_cpus=0, num_gpus=order["gpus"], resources={order["resource"]: 1}, max_concurrency=4).remote()

    def facts(self):
        return self.actor.facts.remote()

    def run(self, *words):
        for ref in self.actor.run.options(num_returns="streaming").remote(*words):
            yield self.ray.get(ref)

    def stop(self):
        self.actor.stop.remote()


class Actor(Replica):
    def facts(self):
        import ray

        return Replica.facts(self, ray.util.get_node_ip_address())


class Here(Replica):
    """The script as the driver: a process of this machine, which finds the cluster."""

    def facts(self):
        try:
            ip = socket.gethostbyname(socket.gethostname())
        except OSError:  # nobody else looks for it
            ip = "127.0.0.1"
        return Replica.facts(self, ip)


def address(text):
    return [int(part) if part.isdigit() else 0 for part in re.split("[.:]", text)]


def on_machines(order):
    import ray

    ray.init(address="auto", log_to_driver=False, logging_level="ERROR")
    far = [Far(ray, order) for _ in order["nodes"]]
    facts = ray.get([f.facts() for f in far])
    ranked = sorted(range(len(far)), key=lambda i: address(facts[i]["ip"]))
    return [far[i] for i in ranked], [facts[i] for i in ranked]


def main():
    with open(os.path.join(HERE, "job.json")) as f:
        order = json.load(f)
    screen, codes, failed = Screen(), {}, []
    machines, facts = [], []
    asked = threading.Event()

    def stop(*_):
        asked.set()

    signal.signal(signal.SIGTERM, stop)
    if order.get("driver"):
        machines = [Here()]
        facts = [machines[0].facts()]
    else:
        machines, facts = on_machines(order)
    hosts, port = [f["ip"] for f in facts], facts[0]["port"]

    def follow(number):
        code = 1
        try:
            for said in machines[number].run(order["nodes"][number], number, hosts, port, order["env"], order["links"]):
                if isinstance(said, bytes):
                    screen.lines(number, said)
                else:
                    code = said["code"]
                    screen.ended(said["ends"])
        except Exception as e:
            screen.lines(number, ("dlwb: machine %s is lost: %s" % (hosts[number], str(e).strip().split("\n")[0])).encode())
        if code and not failed:
            failed.append(code)
        codes[number] = code

    threads = [threading.Thread(target=follow, args=(n,), daemon=True) for n in range(len(machines))]
    for t in threads:
        t.start()
    since, told = None, False
    while any(t.is_alive() for t in threads):
        time.sleep(0.05)
        if failed and since is None:
            since = time.monotonic()
        if not told and (asked.is_set() or since is not None and time.monotonic() - since > GRACE):
            told = True
            for m in machines:
                try:
                    m.stop()
                except Exception:
                    pass
    text = "[dlwb] ranks: " + " ".join("%d:%d" % (r, c) for r, c in sorted(screen.ends.items()))
    os.write(1, text.encode() + b"\n")
    os._exit(failed[0] if failed else 0)


if __name__ == "__main__":
    main()
