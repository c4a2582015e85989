"""Fetches one address into a directory, unless what is there is still what the
address has. Arguments: address, directory, stamp, name of the file, SHA-256 (may be
empty). Prints one JSON object; news go to standard error."""
import hashlib, json, os, shutil, sys, time, urllib.error, urllib.request

url, into, stamp, name, want = (sys.argv[1:] + [""])[:5]
into, stamp = os.path.join(os.path.expanduser("~"), into), os.path.join(os.path.expanduser("~"), stamp)
file, fresh = os.path.join(into, name), into + ".new"


def fail(why):
    shutil.rmtree(fresh, ignore_errors=True)
    print(why, file=sys.stderr)
    sys.exit(1)


def known():
    """What the last fetch noted, where its file is still there."""
    try:
        with open(stamp) as f:
            had = json.load(f)
        if had.get("url") == url and had.get("file") == name and os.path.getsize(file) == had.get("bytes"):
            return had
    except (OSError, ValueError):
        pass
    return {}


def tell(had, unchanged):
    print(json.dumps({**{k: had[k] for k in ("url", "sha256", "bytes", "file")}, "unchanged": unchanged}))
    sys.exit(0)


def body(reply, out):
    """Copies the reply and gives its checksum and length."""
    sums, got, told = hashlib.sha256(), 0, time.monotonic()
    total = reply.headers.get("Content-Length")
    while True:
        part = reply.read(1 << 20)
        if not part:
            break
        out.write(part)
        sums.update(part)
        got += len(part)
        if time.monotonic() - told > 2:
            told = time.monotonic()
            print("progress %d MB%s" % (got // 1000000, " of %d MB" % (int(total) // 1000000) if total else ""), file=sys.stderr, flush=True)
    if total is not None and got != int(total):
        fail("%s ended after %d of %s bytes" % (url, got, total))
    return sums.hexdigest(), got


had = known()
if had and want and had["sha256"] == want:
    tell(had, True)
ask = urllib.request.Request(url, headers={"User-Agent": "dlwb"})
if had.get("etag"):
    ask.add_header("If-None-Match", had["etag"])
elif had.get("modified"):
    ask.add_header("If-Modified-Since", had["modified"])
try:
    shutil.rmtree(fresh, ignore_errors=True)
    os.makedirs(fresh, mode=0o700)
    os.makedirs(os.path.dirname(stamp), exist_ok=True)
    with urllib.request.urlopen(ask, timeout=60) as reply, open(os.path.join(fresh, name), "wb") as out:
        digest, size = body(reply, out)
        out.flush()
        os.fsync(out.fileno())
        note = {"url": url, "sha256": digest, "bytes": size, "file": name, "etag": reply.headers.get("ETag"), "modified": reply.headers.get("Last-Modified")}
except urllib.error.HTTPError as e:
    if e.code == 304 and had and not (want and had["sha256"] != want):
        shutil.rmtree(fresh, ignore_errors=True)
        tell(had, True)
    fail("%s answered %d %s" % (url, e.code, e.reason))
except (OSError, ValueError) as e:
    fail("%s: %s" % (url, e))
if want and digest != want:
    fail("%s has the SHA-256 %s, and the profile says %s" % (url, digest, want))
same = bool(had) and had["sha256"] == digest
if os.path.exists(into):
    shutil.rmtree(into + ".old", ignore_errors=True)
    os.rename(into, into + ".old")
os.rename(fresh, into)
shutil.rmtree(into + ".old", ignore_errors=True)
with open(stamp + ".new", "w") as f:
    json.dump(note, f)
os.replace(stamp + ".new", stamp)
tell(note, same)
