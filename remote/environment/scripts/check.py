# Tells whether the interpreter that runs it has everything that a requirements
# file asks for, as pip would find it: {"left": [...]} are the requirements that
# are not met, {"unsure": "..."} is one that only pip can judge. The file comes
# over stdin. It takes a twentieth of the time that pip takes to say so.
import json
import platform
import re
import sys
from importlib import metadata

NAME = re.compile(r"^([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[([^\]]*)\])?\s*(.*)$")
SPEC = re.compile(r"^(~=|==|!=|<=|>=|<|>)\s*(\d+(?:\.\d+)*)(\.\*)?$")
PLAIN = re.compile(r"^\d+(?:\.\d+)*$")
OPTION = re.compile(r"^(?:-i|-f|--index-url|--extra-index-url|--find-links|--no-index|--prefer-binary|--trusted-host)(?:[ =]|$)")
MARK = re.compile(r"^(python_version|python_full_version|sys_platform|platform_system|platform_machine|os_name|"
                  r"implementation_name|platform_python_implementation)\s*(==|!=|<=|>=|<|>)\s*['\"]([^'\"]*)['\"]$")


class Unsure(Exception):
    pass


def release(text):
    public = text.split("+")[0]
    if not PLAIN.match(public):
        raise Unsure("version " + text)
    numbers = [int(n) for n in public.split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return numbers


def compare(have, operator, want):
    return {"==": have == want, "!=": have != want, "<=": have <= want, ">=": have >= want,
            "<": have < want, ">": have > want}[operator]


def meets(version, specs):
    for spec in filter(None, (s.strip() for s in specs.strip().strip("()").split(","))):
        m = SPEC.match(spec)
        if not m:
            raise Unsure(spec)
        operator, number, star = m.groups()
        have = release(version)
        if star or operator == "~=":
            head = [int(n) for n in number.split(".")]
            if operator not in ("==", "~=") or not star and len(head) < 2:
                raise Unsure(spec)
            head = head if star else head[:-1]
            same = (have + [0] * len(head))[:len(head)] == head
            if not same or operator == "~=" and have < release(number):
                return False
        elif not compare(have, operator, release(number)):
            return False
    return True


def applies(marker, extras):
    """Evaluates what stands behind the semicolon."""
    if " or " in marker or "(" in marker:
        raise Unsure(marker)
    facts = {
        "python_version": "%d.%d" % sys.version_info[:2], "python_full_version": platform.python_version(),
        "sys_platform": sys.platform, "platform_system": platform.system(),
        "platform_machine": platform.machine(), "os_name": __import__("os").name,
        "implementation_name": sys.implementation.name,
        "platform_python_implementation": platform.python_implementation(),
    }
    for part in marker.split(" and "):
        part = part.strip()
        extra = re.match(r"^extra\s*==\s*['\"]([^'\"]*)['\"]$", part)
        if extra:
            if canonical(extra.group(1)) not in extras:
                return False
            continue
        m = MARK.match(part)
        if not m:
            raise Unsure(part)
        name, operator, want = m.groups()
        have = facts[name]
        if name.startswith("python_"):
            if not compare(release(have), operator, release(want)):
                return False
        elif operator not in ("==", "!="):
            raise Unsure(part)
        elif not compare(have, operator, want):
            return False
    return True


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def wanted(text):
    for line in text.splitlines():
        line = re.sub(r"(^|\s)#.*$", "", line).strip()
        if not line or OPTION.match(line):
            continue
        if line.startswith("-") or line.endswith("\\") or " --" in line or "@" in line or "$" in line:
            raise Unsure(line)
        yield line


def check(text):
    left, seen = [], set()
    todo = [(line, frozenset()) for line in wanted(text)]
    while todo:
        line, within = todo.pop()
        need, _, marker = line.partition(";")
        if marker.strip() and not applies(marker.strip(), within):
            continue
        m = NAME.match(need.strip())
        if not m or "@" in need:
            raise Unsure(line)
        name, extras, specs = canonical(m.group(1)), frozenset(
            canonical(e.strip()) for e in (m.group(2) or "").split(",") if e.strip()), m.group(3)
        try:
            have = metadata.distribution(m.group(1))
        except metadata.PackageNotFoundError:
            left.append(need.strip())
            continue
        if have.version is None or have.metadata["Name"] is None or canonical(have.metadata["Name"]) != name:
            raise Unsure(line)
        if not meets(have.version, specs):
            left.append(need.strip())
        if extras - {canonical(e) for e in have.metadata.get_all("Provides-Extra") or ()}:
            raise Unsure(line)
        if (name, extras) not in seen:
            seen.add((name, extras))
            todo += [(r, extras) for r in have.requires or ()]
    return left


try:
    answer = {"left": check(sys.stdin.read())}
except Unsure as unsure:
    answer = {"unsure": str(unsure)}
except Exception as error:  # a package whose metadata is broken: pip knows what to do
    answer = {"unsure": repr(error)}
print("dlwb\tcheck\t" + json.dumps(answer))
