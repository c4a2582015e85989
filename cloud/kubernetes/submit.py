"""Hands the driver of a RayJob to Ray, in the pod of KubeRay's Job, and passes on what it
prints. The Job tries once: so this waits for Ray's dashboard, and follows the log again
where the connection is lost, without the lines that it has passed on. Those of the driver
have its rank in front."""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request

ENTRY = ["sh", "/dlwb/given/launch.sh", "driver"]
UP = 300.0  # seconds for Ray to answer
LOST = 120.0  # seconds after which a Ray that answers no more is gone
OVER = ("SUCCEEDED", "FAILED", "STOPPED")
ADDRESS = os.environ["RAY_DASHBOARD_ADDRESS"]
if "://" not in ADDRESS:
    ADDRESS = "http://" + ADDRESS
JOB = os.environ["RAY_JOB_SUBMISSION_ID"]


def ray(verb, *words, **how):
    return subprocess.Popen(["ray", "job", verb, "--address", ADDRESS, *words], **how)


def status():
    """What Ray says of the job; None: that there is no such job."""
    ask = urllib.request.Request(ADDRESS + "/api/jobs/" + JOB)
    if os.environ.get("RAY_AUTH_TOKEN"):
        ask.add_header("Authorization", "Bearer " + os.environ["RAY_AUTH_TOKEN"])
    try:
        with urllib.request.urlopen(ask, timeout=20) as answer:
            return json.load(answer)["status"]
    except urllib.error.HTTPError as e:
        if e.code == 404:
            return None
        raise


def patiently(limit):
    """The status, as soon as Ray answers."""
    end = time.monotonic() + limit
    while True:
        try:
            return status()
        except (OSError, ValueError, KeyError) as e:
            if time.monotonic() > end:
                sys.exit("Ray does not answer at %s: %s" % (ADDRESS, e))
            time.sleep(1)


def main():
    if patiently(UP) is None:
        code = ray("submit", "--submission-id", JOB, "--no-wait", "--", *ENTRY).wait()
        if code and patiently(LOST) is None:
            sys.exit("ray job submit exited with code %d" % code)
    log = Log()
    while True:
        whole = log.follow("--follow") == 0
        said = patiently(LOST)
        if said is None:
            sys.exit("Ray does not know the job any more: its head was started anew")
        if said in OVER:
            if not whole:  # it may have been cut before the end
                log.follow()
            sys.exit(0 if said == "SUCCEEDED" else 1)
        time.sleep(1)


class Log:
    """What the driver prints: each line once, whatever is read again."""

    def __init__(self):
        self.passed = 0

    def follow(self, *how):
        reading, seen = ray("logs", *how, JOB, stdout=subprocess.PIPE), 0
        for line in reading.stdout:
            if line.startswith(b"[rank"):
                seen += 1
                if seen <= self.passed:
                    continue
                self.passed = seen
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
        return reading.wait()


main()
