"""What a program can do so as not to be found: hostile.py KIND UP-FILE."""
import ctypes, os, resource, signal, sys, time

KIND, UP = sys.argv[1], sys.argv[2]


def hide():
    """Leaves session, parent, signals, files, working directory and name behind."""
    for _ in range(2):
        if os.fork():
            os._exit(0)
        os.setsid()
    for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(s, signal.SIG_IGN)
    os.chdir("/")
    os.closerange(0, 256)
    ctypes.CDLL(None).prctl(15, b"sd) Z 1 (pam", 0, 0, 0)


def forever():
    while True:
        time.sleep(60)


def hop():
    """Is another process, in another session, at every moment."""
    while True:
        if os.fork():
            os._exit(0)
        os.setsid()


def storm():
    """As many processes as may be, each of which starts more when it can."""
    resource.setrlimit(resource.RLIMIT_NPROC, (150, 150))
    while True:
        try:
            if not os.fork():
                os.setsid()
        except OSError:
            time.sleep(0.001)
        if os.getpid() % 7 == 0:  # some end all the time
            os._exit(0)


if "DLWB_RUN" in os.environ:  # once more, with no environment and another name
    pid = os.fork()
    if pid == 0:
        os.execve(sys.executable, ["[kworker/0:1]", "-E", sys.argv[0], KIND, UP], {})
    os.waitpid(pid, 0)
    if KIND.endswith("-and-end"):
        sys.exit(0)
    forever()
open(UP, "w").close()
hide()
{"daemon": forever, "hop": hop, "storm": storm}[KIND.removesuffix("-and-end")]()
