"""Writes what a replica has written to its standard output, as a tar: what lies below
the paths of the results, by names below the code's directory, and the directory of the
run's own below .dlwb-node. What has not changed since the round that a number names is
left out. The last entry lists all that there is, so that whoever reads knows what is
whole. As "note" it remembers what is there before the run begins, which is no result.

What has changed is told by the times and the size of a file being others, and never by a
clock: a volume has that of its server."""

import glob
import io
import json
import os
import stat
import sys
import tarfile
import time

OWN = ".dlwb-node"
WORK = os.path.dirname(os.path.abspath(__file__))
COARSE = 2 * 10**9  # within so many nanoseconds two changes may look like one
ROUNDS = 4  # of which it is remembered what was sent: several may be asking


def below(top, name):
    """The files below a directory, and links of it, by their names in the archive. A link
    to a directory is followed where a path of the results is one, and only there."""
    if not os.path.isdir(top):
        if os.path.lexists(top):
            yield top, name
        return
    for where, dirs, files in os.walk(top):
        links = [d for d in dirs if os.path.islink(os.path.join(where, d))]
        for n in sorted(files + links):
            path = os.path.join(where, n)
            yield path, os.path.normpath(os.path.join(name, os.path.relpath(path, top)))


def state(path):
    s = os.lstat(path)
    return s, [s.st_mtime_ns, s.st_ctime_ns, s.st_size]


def remembered(what):
    try:
        with open(os.path.join(WORK, "kept-" + what)) as f:
            return json.load(f)
    except (OSError, ValueError):
        return {}


def remember(what, states):
    path = os.path.join(WORK, "kept-" + what)
    with open(path + ".tmp", "w") as f:
        json.dump(states, f)
    os.replace(path + ".tmp", path)


def tops(number, code):
    with open(os.path.join(WORK, "keep")) as f:
        paths = [line.rstrip("\n") for line in f] if number == 0 else []
    return [(os.path.join(code, p), p) for p in paths] + [(os.path.join(WORK, OWN), OWN)]


def note(number, code):
    there = {}
    for top, top_name in tops(number, code):
        for path, name in below(top, top_name):
            try:
                there[name] = state(path)[1]
            except OSError:
                pass
    remember("given", there)


def send(number, code, since):
    given, before, sent = remembered("given"), remembered(str(since)), {}
    now = time.time_ns()
    found, left, seen = [], [], set()
    with tarfile.open(fileobj=sys.stdout.buffer, mode="w|", format=tarfile.PAX_FORMAT) as out:
        for top, top_name in tops(number, code):
            for path, name in below(top, top_name):
                if name in seen:
                    continue
                seen.add(name)
                try:
                    was = add(out, path, name, given.get(name), before.get(name), found)
                except (OSError, tarfile.TarError) as e:
                    if isinstance(e, tarfile.TarError) or "unexpected end" in str(e):
                        raise  # half of it is in the archive
                    left.append([name, str(e)])
                    continue
                if was and max(was[:2]) < now - COARSE:
                    sent[name] = was
        remember(str(now), sent)
        text = json.dumps({"at": now, "files": found, "left": left}).encode()
        entry = tarfile.TarInfo(".dlwb-list")
        entry.size = len(text)
        out.addfile(entry, io.BytesIO(text))
    rounds = sorted(p for p in glob.glob(os.path.join(glob.escape(WORK), "kept-*")) if p[-1].isdigit())
    for old in rounds[:-ROUNDS]:
        if not old.endswith("kept-%d" % since):
            os.remove(old)


def add(out, path, name, given, before, found):
    """Adds one file and gives its state; one that was there before the run, and is as it
    was, is no result."""
    s, now = state(path)
    if now == given:
        return None
    if stat.S_ISLNK(s.st_mode):
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname = tarfile.SYMTYPE, os.readlink(path)
        out.addfile(entry)
        found.append([name, -1])
        return None
    if not stat.S_ISREG(s.st_mode):
        raise OSError("it is no file")
    if now == before:
        found.append([name, s.st_size])
        return now
    with open(path, "rb") as f:
        s = os.fstat(f.fileno())
        entry = tarfile.TarInfo(name)
        entry.size, entry.mtime, entry.mode = s.st_size, s.st_mtime_ns / 1e9, stat.S_IMODE(s.st_mode)
        out.addfile(entry, f)
    found.append([name, s.st_size])
    return [s.st_mtime_ns, s.st_ctime_ns, s.st_size]


if __name__ == "__main__":
    if sys.argv[1] == "note":
        note(int(sys.argv[2]), sys.argv[3])
    else:
        send(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
