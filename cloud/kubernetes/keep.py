"""Writes what a replica has written to its standard output, as a tar: what lies below
the paths of the results, by names below the code's directory, and the directory of the
run's own below .dlwb-node. Files that have not changed since a moment are left out. The
last entry lists all that there is, so that whoever reads knows what is whole."""

import io
import json
import os
import stat
import sys
import tarfile
import time

OWN = ".dlwb-node"


def below(top, name):
    """The files below a directory, and links of it, by their names in the archive."""
    if not os.path.isdir(top) or os.path.islink(top):
        if os.path.lexists(top):
            yield top, name
        return
    for where, dirs, files in os.walk(top):
        links = [d for d in dirs if os.path.islink(os.path.join(where, d))]
        for n in sorted(files + links):
            path = os.path.join(where, n)
            yield path, os.path.normpath(os.path.join(name, os.path.relpath(path, top)))


def main():
    number, code, since = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    work = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(work, "keep")) as f:
        paths = [line.rstrip("\n") for line in f] if number == 0 else []
    begun = os.stat(os.path.join(work, "unpacked")).st_mtime_ns
    now = time.time_ns()
    found, left, seen = [], [], set()
    with tarfile.open(fileobj=sys.stdout.buffer, mode="w|", format=tarfile.PAX_FORMAT) as out:
        tops = [(os.path.join(code, p), p, begun) for p in paths] + [(os.path.join(work, OWN), OWN, 0)]
        for top, top_name, after in tops:
            for path, name in below(top, top_name):
                if name in seen:
                    continue
                seen.add(name)
                try:
                    add(out, path, name, max(since, after), after, found)
                except (OSError, tarfile.TarError) as e:
                    if isinstance(e, tarfile.TarError) or "unexpected end" in str(e):
                        raise  # half of it is in the archive
                    left.append([name, str(e)])
        text = json.dumps({"at": now, "files": found, "left": left}).encode()
        entry = tarfile.TarInfo(".dlwb-list")
        entry.size = len(text)
        out.addfile(entry, io.BytesIO(text))


def add(out, path, name, since, after, found):
    """Adds one file; one that came with the code, and is as it came, is no result."""
    s = os.lstat(path)
    changed = max(s.st_mtime_ns, s.st_ctime_ns)
    if changed <= after:
        return
    if stat.S_ISLNK(s.st_mode):
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname = tarfile.SYMTYPE, os.readlink(path)
        out.addfile(entry)
        found.append([name, -1])
        return
    if not stat.S_ISREG(s.st_mode):
        raise OSError("it is no file")
    if changed <= since:
        found.append([name, s.st_size])
        return
    with open(path, "rb") as f:
        s = os.fstat(f.fileno())
        entry = tarfile.TarInfo(name)
        entry.size, entry.mtime, entry.mode = s.st_size, s.st_mtime_ns / 1e9, stat.S_IMODE(s.st_mode)
        out.addfile(entry, f)
    found.append([name, s.st_size])


if __name__ == "__main__":
    main()
