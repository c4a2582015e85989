# Tells what a Python has, for the recipe of a run: one line of JSON.
import json, os, re, sys
try:
    from importlib import metadata, util
except ImportError:
    sys.exit(1)
packages, torch, cuda = [], "", ""
for d in metadata.distributions():
    try:
        name, version = d.metadata["Name"], d.version
        if not name:
            continue
        line = name + "==" + str(version)
        direct = d.read_text("direct_url.json")
        if direct:
            direct = json.loads(direct)
            url = re.sub(r"//[^/@]*@", "//", direct.get("url", ""))
            vcs = direct.get("vcs_info")
            if vcs:
                line = "%s @ %s+%s@%s" % (name, vcs.get("vcs"), url, vcs.get("commit_id"))
            elif url:
                line = name + " @ " + url
        packages.append(line)
    except Exception:
        pass
try:
    found = util.find_spec("torch")
    if found and found.origin:
        text = open(os.path.join(os.path.dirname(found.origin), "version.py")).read()
        get = lambda key: (re.search(r"^%s(?:: *[^=]*)? = ['\"]([^'\"]*)" % key, text, re.M) or [0, ""])[1]
        torch, cuda = get("__version__"), get("cuda")
except Exception:
    pass
print(json.dumps({"packages": packages, "torch": torch, "cuda": cuda}))
