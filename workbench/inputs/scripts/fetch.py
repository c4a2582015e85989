"""Fetches one address into a directory, unless what is there is still what the
address has. Arguments: address, directory, stamp, name of the file, SHA-256 (may be
empty), the most bytes (0: what the disk has room for). Prints one JSON object; news
go to standard error. What came before the connection was lost is gone on with."""
import hashlib, http.client, json, os, re, shutil, sys, time, urllib.error, urllib.request

url, into, stamp, name, want, most = (sys.argv[1:] + ["", "0"])[:6]
into, stamp, most = os.path.join(os.path.expanduser("~"), into), os.path.join(os.path.expanduser("~"), stamp), int(most)
file, fresh, half = os.path.join(into, name), into + ".new", into + ".part.json"
part = os.path.join(fresh, name)
TRIES = 6             # with nothing new in between
SILENT = 60           # seconds until a read is given up
SLOW = (300, 300000)  # seconds in which so many bytes have to come, over all tries
heard = {"bytes": 0, "mark": 0, "since": time.monotonic()}
# An address leads to http and https alone, whatever it is redirected to.
opener = urllib.request.OpenerDirector()
for kind in ("Proxy", "Unknown", "HTTP", "HTTPS", "HTTPDefaultError", "HTTPRedirect"):
    opener.add_handler(getattr(urllib.request, kind + "Handler")())
opener.add_handler(urllib.request.HTTPErrorProcessor())


def drop():
    shutil.rmtree(fresh, ignore_errors=True)
    if os.path.exists(half):
        os.remove(half)


def fail(why, keep=False):
    if not keep:
        drop()
    print(why, file=sys.stderr)
    sys.exit(1)


def read(path):
    try:
        with open(path) as f:
            had = json.load(f)
        return had if isinstance(had, dict) and had.get("url") == url and had.get("file") == name else {}
    except (OSError, ValueError):
        return {}


def known():
    """What the last fetch noted, where its file is still there."""
    had = read(stamp)
    try:
        return had if os.path.getsize(file) == had.get("bytes") else {}
    except OSError:
        return {}


def tell(had, unchanged):
    print(json.dumps({**{k: had[k] for k in ("url", "sha256", "bytes", "file")}, "unchanged": unchanged}))
    sys.exit(0)


def write(path, note):
    """The address in it may be a signed one: it is for nobody else."""
    with open(os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
        json.dump(note, f)
    os.replace(path + ".new", path)


def mb(n):
    return "%d MB" % (n // 1000000) if n >= 1000000 else "%d bytes" % n


def room(more):
    """Ends where so much more is more than may come, or than the disk keeps free."""
    disk = shutil.disk_usage(fresh)
    spare = min(1 << 30, disk.total // 20)  # the training writes too
    if more > disk.free - spare:
        fail("%s: the disk has %s free, %s of them are kept, and %s were to come" % (url, mb(disk.free), mb(spare), mb(more)))


def bound(size):
    if most and size > most:
        fail("%s has more than the %s that data of the profile allows (most)" % (url, mb(most)))


def pace(now):
    """Ends where an address gives next to nothing for a long time."""
    if now - heard["since"] > SLOW[0]:
        if heard["bytes"] - heard["mark"] < SLOW[1]:
            fail("%s gave %d bytes in %d seconds" % (url, heard["bytes"] - heard["mark"], SLOW[0]), keep=True)
        heard["since"], heard["mark"] = now, heard["bytes"]


def begun():
    """What of the file came before, the sign by which its rest is asked for, and its
    checksum."""
    sums, note, size = hashlib.sha256(), read(half), 0
    sign = note.get("etag") or ""
    if not sign or sign.startswith("W/"):
        sign = note.get("modified") or ""
    try:
        with open(part, "rb") as f:
            for block in iter(lambda: f.read(1 << 20), b""):
                sums.update(block)
                size += len(block)
    except OSError:
        size = 0
    if not size or not sign:
        return "", 0, hashlib.sha256()
    return sign, size, sums


def body(reply, out, sums, got, total):
    """Copies the reply and gives the length of the file."""
    told = time.monotonic()
    room((total or got) - got)
    while True:
        block = reply.read1(1 << 16)
        if not block:
            break
        bound(got + len(block))
        out.write(block)
        sums.update(block)
        got += len(block)
        heard["bytes"] += len(block)
        now = time.monotonic()
        if now - told > 2:
            told = now
            print("progress %s%s" % (mb(got), " of " + mb(total) if total else ""), file=sys.stderr, flush=True)
            room(0)
        pace(now)
    if total is not None and got != total:
        raise OSError("it ended after %d of %d bytes" % (got, total))
    return got


def attempt(had):
    """Fetches the file, or the rest of it: its checksum, length and headers."""
    ask = urllib.request.Request(url, headers={"User-Agent": "dlwb"})
    sign, got, sums = begun()
    if got:
        ask.add_header("Range", "bytes=%d-" % got)
        ask.add_header("If-Range", sign)
    elif had.get("etag"):
        ask.add_header("If-None-Match", had["etag"])
    elif had.get("modified"):
        ask.add_header("If-Modified-Since", had["modified"])
    with opener.open(ask, timeout=SILENT) as reply:
        length = reply.headers.get("Content-Length")
        total = int(length) if length is not None else None
        if reply.status == 206:
            place = re.match(r"bytes (\d+)-\d+/(\d+|\*)$", reply.headers.get("Content-Range", ""))
            if not place or int(place.group(1)) != got:
                fail("%s answered with another part than was asked for" % url)
            total = int(place.group(2)) if place.group(2) != "*" else total and got + total
            print("progress goes on behind %s" % mb(got), file=sys.stderr, flush=True)
        else:
            got, sums = 0, hashlib.sha256()
        bound(total or 0)
        headers = {"etag": reply.headers.get("ETag"), "modified": reply.headers.get("Last-Modified")}
        write(half, {"url": url, "file": name, **headers})
        with open(part, "ab" if got else "wb") as out:
            size = body(reply, out, sums, got, total)
            out.flush()
            os.fsync(out.fileno())
    return sums.hexdigest(), size, headers


def came():
    try:
        return os.path.getsize(part)
    except OSError:
        return 0


def fetched(had):
    tries, furthest = 0, came()
    while True:
        before = came()
        try:
            return attempt(had)
        except urllib.error.HTTPError as e:
            if e.code == 304 and had and not (want and had["sha256"] != want):
                drop()
                tell(had, True)
            if e.code == 416 and before:  # what came is no part of what is there now
                drop()
                os.makedirs(fresh, mode=0o700)
                continue
            if e.code < 500 and e.code not in (408, 429):
                fail("%s answered %d %s" % (url, e.code, e.reason))
            why = "%s answered %d %s" % (url, e.code, e.reason)
        except (OSError, ValueError, http.client.HTTPException) as e:
            why = "%s: %s" % (url, e)
        tries = 0 if came() > furthest else tries + 1  # who begins anew each time gets nowhere
        furthest = max(furthest, came())
        if tries >= TRIES or not came():
            fail(why, keep=came() > 0)
        print("progress again, behind %s: %s" % (mb(came()), why), file=sys.stderr, flush=True)
        time.sleep(min(1 << tries, 20))


had = known()
if had and want and had["sha256"] == want:
    tell(had, True)
try:
    if not read(half):
        drop()
    os.makedirs(fresh, mode=0o700, exist_ok=True)
    os.makedirs(os.path.dirname(stamp), exist_ok=True)
    digest, size, headers = fetched(had)
    if want and digest != want:
        fail("%s has the SHA-256 %s, and the profile says %s" % (url, digest, want))
    same = bool(had) and had["sha256"] == digest
    if os.path.exists(into):
        shutil.rmtree(into + ".old", ignore_errors=True)
        os.rename(into, into + ".old")
    os.rename(fresh, into)
    shutil.rmtree(into + ".old", ignore_errors=True)
    drop()
    note = {"url": url, "sha256": digest, "bytes": size, "file": name, **headers}
    write(stamp, note)
except OSError as e:
    fail("%s: %s" % (url, e))
tell(note, same)
