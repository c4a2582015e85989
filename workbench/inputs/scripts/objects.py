"""Fetches a set of objects into a directory, unless what is there is still what the set
has. Standard input goes on behind this program with one JSON object: address, digest,
dir, stamp, most (bytes; 0: what the disk has room for) and files, each with path, size,
etag, modified and url. Prints one JSON object; news go to standard error. A file that is
unchanged is not fetched again, and what came before a connection was lost is gone on
with. The addresses are signed: they are told to nobody, and written nowhere."""
import hashlib, http.client, json, os, queue, re, shutil, sys, threading, time, urllib.error, urllib.request

GIVEN = json.loads(sys.stdin.buffer.read().decode())
HOME = os.path.expanduser("~")
into, stamp = os.path.join(HOME, GIVEN["dir"]), os.path.join(HOME, GIVEN["stamp"])
fresh, parts, journal = into + ".new", into + ".parts", into + ".new.json"
ADDRESS, FILES = GIVEN["address"], GIVEN["files"]
TOTAL = sum(f["size"] for f in FILES)
AT_ONCE = 8
TRIES = 6             # with nothing new in between
SILENT = 60           # seconds until a read is given up
SLOW = (300, 300000)  # seconds in which so many bytes have to come, over all files
opener = urllib.request.OpenerDirector()
for kind in ("Proxy", "Unknown", "HTTP", "HTTPS", "HTTPDefaultError"):
    opener.add_handler(getattr(urllib.request, kind + "Handler")())
opener.add_handler(urllib.request.HTTPErrorProcessor())
lock = threading.Lock()
heard = {"bytes": 0, "files": 0, "new": 0}
failed = []


class Fault(Exception):
    pass


def mb(n):
    return "%d MB" % (n // 1000000) if n >= 1000000 else "%d bytes" % n


def end(why):
    print(why, file=sys.stderr)
    sys.stderr.flush()
    os._exit(1)  # threads may be in a read


def load(path):
    try:
        with open(path) as f:
            had = json.load(f)
        return had if isinstance(had, dict) and had.get("url") == ADDRESS else {}
    except (OSError, ValueError):
        return {}


def write(path, note):
    with open(os.open(path + ".tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
        json.dump(note, f)
    os.replace(path + ".tmp", path)


def sign(f):
    return [f["size"], f["etag"], f["modified"]]


def at(directory, f):
    return os.path.join(directory, *f["path"].split("/"))


def whole(directory, f, have):
    """Whether a file is there as it was put there: a training may have written to it."""
    try:
        st = os.stat(at(directory, f))
    except OSError:
        return False
    return have.get(f["path"]) == sign(f) and st.st_size == f["size"] and int(st.st_mtime) == f["modified"]


def tell(unchanged):
    print(json.dumps({"url": ADDRESS, "sha256": GIVEN["digest"], "bytes": TOTAL, "file": "", "files": len(FILES), "unchanged": unchanged}))
    sys.exit(0)


def keep(source, target):
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def part_of(f):
    word = json.dumps([f["path"]] + sign(f))
    return os.path.join(parts, hashlib.sha256(word.encode()).hexdigest())


def came(part):
    try:
        return os.path.getsize(part)
    except OSError:
        return 0


def why_of(e):
    """What S3 says of a refusal, in its own word."""
    try:
        code = re.search(rb"<Code>(\w+)</Code>", e.read(2000))
    except OSError:
        code = None
    return "%d %s" % (e.code, code.group(1).decode() if code else e.reason)


def told_of(e):
    """What an error says, unless it says the signed part of an address."""
    return type(e).__name__ if "X-Amz-" in str(e) else str(e)


def attempt(f, part):
    got = came(part)
    if got > f["size"]:
        os.remove(part)
        got = 0
    if got == f["size"] and got > 0:
        return
    ask = urllib.request.Request(f["url"], headers={"User-Agent": "dlwb"})
    if f["etag"]:
        ask.add_header("If-Match", f["etag"])
    if got:
        ask.add_header("Range", "bytes=%d-" % got)
    with opener.open(ask, timeout=SILENT) as reply:
        if got and reply.status != 206:
            got = 0
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | (os.O_APPEND if got else os.O_TRUNC), 0o600), "ab" if got else "wb") as out:
            while True:
                block = reply.read1(1 << 16)
                if not block:
                    break
                got += len(block)
                if got > f["size"]:
                    raise Fault("%s/%s is longer than its %s" % (ADDRESS, f["path"], mb(f["size"])))
                out.write(block)
                with lock:
                    heard["bytes"] += len(block)
    if got != f["size"]:
        raise OSError("it ended after %d of %d bytes" % (got, f["size"]))


def fetch(f):
    part, tries, furthest = part_of(f), 0, 0
    name = ADDRESS if len(FILES) == 1 else "%s/%s" % (ADDRESS, f["path"])
    while True:
        try:
            attempt(f, part)
            break
        except urllib.error.HTTPError as e:
            said = why_of(e)
            if e.code == 412:
                raise Fault("%s changed while it was fetched" % name)
            if e.code == 416 and came(part):
                os.remove(part)
            elif e.code < 500 and e.code not in (408, 429):
                raise Fault("S3 answered %s for %s" % (said, name))
            why = "S3 answered %s for %s" % (said, name)
        except (OSError, ValueError, http.client.HTTPException) as e:
            why = "%s: %s" % (name, told_of(e))
        tries = 0 if came(part) > furthest else tries + 1
        furthest = max(furthest, came(part))
        if tries >= TRIES:
            raise Fault(why)
        time.sleep(min(1 << tries, 20))
    os.utime(part, (f["modified"], f["modified"]))
    os.chmod(part, 0o644)
    target = at(fresh, f)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    os.replace(part, target)
    with lock:
        heard["files"] += 1
        heard["new"] += 1
        done[f["path"]] = sign(f)


def work():
    while not failed:
        try:
            f = todo.get_nowait()
        except queue.Empty:
            return
        try:
            fetch(f)
        except Exception as e:
            failed.append(told_of(e))


had = load(stamp)
have = had.get("have") or {}
there = [f for f in FILES if whole(into, f, have)]
if had.get("sha256") == GIVEN["digest"] and len(there) == len(FILES):
    tell(True)
if GIVEN["most"] and TOTAL > GIVEN["most"]:
    end("%s has %s, and data of the profile allows %s (most)" % (ADDRESS, mb(TOTAL), mb(GIVEN["most"])))
try:
    done = load(journal).get("have") or {}
    if not done:
        shutil.rmtree(fresh, ignore_errors=True)
    os.makedirs(fresh, mode=0o700, exist_ok=True)
    os.makedirs(parts, mode=0o700, exist_ok=True)
    os.makedirs(os.path.dirname(stamp), exist_ok=True)
    done = {f["path"]: sign(f) for f in FILES if whole(fresh, f, done)}
    for root, dirs, names in os.walk(fresh):  # of an earlier state of the set
        for name in names:
            path = os.path.join(root, name)
            if os.path.relpath(path, fresh).replace(os.sep, "/") not in done:
                os.remove(path)
    for f in there:
        if f["path"] not in done:
            target = at(fresh, f)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            keep(at(into, f), target)
            done[f["path"]] = sign(f)
    wanted = {os.path.basename(part_of(f)) for f in FILES if f["path"] not in done}
    for name in os.listdir(parts):
        if name not in wanted:
            os.remove(os.path.join(parts, name))
    todo, more = queue.Queue(), 0
    for f in FILES:
        if f["path"] not in done:
            todo.put(f)
            more += f["size"] - min(came(part_of(f)), f["size"])
    heard["files"] = len(done)
    disk = shutil.disk_usage(fresh)
    spare = min(1 << 30, disk.total // 20)  # the training writes too
    if more > disk.free - spare:
        end("%s: the disk has %s free, %s of them are kept, and %s were to come" % (ADDRESS, mb(disk.free), mb(spare), mb(more)))
    workers = [threading.Thread(target=work, daemon=True) for _ in range(min(AT_ONCE, todo.qsize()))]
    for w in workers:
        w.start()
    told = noted = since = time.monotonic()
    mark = 0
    while any(w.is_alive() for w in workers):
        for w in workers:
            w.join(0.05)
        now = time.monotonic()
        if now - told > 2:
            told = now
            print("progress %s of %s, %d of %d files" % (mb(heard["bytes"]), mb(more), heard["files"], len(FILES)), file=sys.stderr, flush=True)
        if now - noted > 10:
            noted = now
            with lock:
                write(journal, {"url": ADDRESS, "have": dict(done)})
        if now - since > SLOW[0]:
            if heard["bytes"] - mark < SLOW[1]:
                failed.append("%s gave %d bytes in %d seconds" % (ADDRESS, heard["bytes"] - mark, SLOW[0]))
                break
            since, mark = now, heard["bytes"]
        if failed:
            break
    if failed:
        with lock:
            write(journal, {"url": ADDRESS, "have": dict(done)})
        end(failed[0])
    shutil.rmtree(into + ".old", ignore_errors=True)
    if os.path.exists(into):
        os.rename(into, into + ".old")
    os.rename(fresh, into)
    for path in (into + ".old", parts):
        shutil.rmtree(path, ignore_errors=True)
    if os.path.exists(journal):
        os.remove(journal)
    note = {"url": ADDRESS, "sha256": GIVEN["digest"], "bytes": TOTAL, "file": "", "files": len(FILES), "have": done}
    write(stamp, note)
except OSError as e:
    end("%s: %s" % (ADDRESS, e))
tell(heard["new"] == 0 and len(have) == len(FILES))
