"""Sends bytes from one node to another and times them. Arguments: "listen" and a port
(0: any), or an address and a port. Who listens prints its port, then what came."""
import json, socket, sys, time

SIZE = 64 << 20
if sys.argv[1] == "listen":
    s = socket.socket(socket.AF_INET)
    s.bind(("", int(sys.argv[2])))
    s.listen(1)
    s.settimeout(30)
    print(s.getsockname()[1], flush=True)
    c, _ = s.accept()
    c.settimeout(30)
    got, began = 0, time.monotonic()
    while got < SIZE:
        part = c.recv(1 << 20)
        if not part:
            sys.exit("the connection broke after %d bytes" % got)
        got += len(part)
    print(json.dumps({"bandwidth": got / (time.monotonic() - began)}))
    c.sendall(b"k")
else:
    c = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=20)
    c.settimeout(60)
    block = b"\0" * (1 << 20)
    for _ in range(SIZE >> 20):
        c.sendall(block)
    if c.recv(1) != b"k":
        sys.exit("the other side did not take it")
