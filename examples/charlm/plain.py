"""The same model in plain Python, for machines without PyTorch: forward and
backward pass by hand, Adam (Kingma and Ba 2015), and data-parallel averaging
of the gradients over sockets to rank 0 and back."""
import json
import math
import os
import platform
import random
import socket
import struct
import sys
import time
from array import array
from operator import mul


class Lost(Exception):
    """Another rank is not there any more."""


def receive(conn, n):
    data = bytearray()
    while len(data) < n:
        try:
            part = conn.recv(min(n - len(data), 1 << 16))
        except OSError as e:
            raise Lost(f"lost another rank: {e}") from None
        if not part:
            raise Lost("lost another rank: it closed the connection")
        data += part
    return bytes(data)


def send(conn, data):
    try:
        conn.sendall(data)
    except OSError as e:
        raise Lost(f"lost another rank: {e}") from None


class World:
    """The ranks, each connected to rank 0."""

    def __init__(self):
        self.rank = int(os.environ.get("RANK", 0))
        self.size = int(os.environ.get("WORLD_SIZE", 1))
        self.peers, self.head = [], None
        if self.size == 1:
            return
        address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
        if self.rank == 0:
            self.gather_peers(address)
        else:
            self.head = self.reach(address)
            send(self.head, struct.pack("!i", self.rank))

    def gather_peers(self, address):
        with socket.create_server(address, backlog=self.size) as server:
            server.settimeout(120)
            found = {}
            while len(found) < self.size - 1:
                try:
                    conn, _ = server.accept()
                except TimeoutError:
                    raise Lost(f"only {len(found) + 1} of {self.size} ranks came within two minutes") from None
                conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                conn.settimeout(None)
                found[struct.unpack("!i", receive(conn, 4))[0]] = conn
        self.peers = [found[r] for r in sorted(found)]

    def reach(self, address):
        deadline = time.monotonic() + 120
        while True:
            try:
                conn = socket.create_connection(address, timeout=10)
                conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                conn.settimeout(None)
                return conn
            except OSError as e:
                if time.monotonic() > deadline:
                    raise Lost(f"could not reach rank 0 at {address[0]}:{address[1]}: {e}") from None
                time.sleep(0.05)

    def add_up(self, values):
        """The sum over all ranks of each value: to rank 0, added, and back."""
        if self.size == 1:
            return values
        n = 8 * len(values)
        if self.rank:
            send(self.head, array("d", values).tobytes())
            return array("d", receive(self.head, n)).tolist()
        for peer in self.peers:
            values = list(map(float.__add__, values, array("d", receive(peer, n))))
        data = array("d", values).tobytes()
        for peer in self.peers:
            send(peer, data)
        return values

    def share_text(self, text):
        """Rank 0's text, on every rank."""
        data = text.encode() if self.rank == 0 else b""
        n = int(self.add_up([float(len(data))])[0])
        if self.rank:
            return receive(self.head, n).decode() if n else ""
        for peer in self.peers:
            send(peer, data)
        return text


class Trainer:
    checkpoint = "checkpoint.json"
    validation_rows = 256

    def __init__(self, vocab, args):
        self.net = World()
        self.rank, self.world = self.net.rank, self.net.size
        self.vocab, self.context, self.embed, self.hidden = vocab, args.context, args.embed, args.hidden
        rng = random.Random(args.seed)
        wide = args.context * args.embed
        # Rows of all matrices, one after the other: embedding, hidden layer
        # (the last column is the bias), output layer (likewise).
        self.rows_of = [(vocab, args.embed, 1), (args.hidden, wide + 1, math.sqrt(3 / wide)), (vocab, args.hidden + 1, 1 / math.sqrt(args.hidden))]
        self.matrices = [[[rng.uniform(-s, s) for _ in range(width)] for _ in range(n)] for n, width, s in self.rows_of]
        self.m = [0.0] * self.size()
        self.v = [0.0] * self.size()
        self.t = 0

    def about(self):
        return f"plain Python {platform.python_version()} (PyTorch is not installed), gradients averaged over sockets"

    def size(self):
        return sum(n * width for n, width, _ in self.rows_of)

    def forward(self, context):
        emb, hid, out = self.matrices
        x = [v for c in context for v in emb[c]]
        x.append(1.0)
        h = [math.tanh(sum(map(mul, row, x))) for row in hid]
        h.append(1.0)
        return x, h, [sum(map(mul, row, h)) for row in out]

    def logits(self, context):
        return self.forward(context)[2]

    def loss(self, batch):
        total = 0.0
        for row in batch:
            z = self.forward(row[:-1])[2]
            top = max(z)
            total += top + math.log(sum(math.exp(s - top) for s in z)) - z[row[-1]]
        return total / max(1, len(batch))

    def backward(self, batch):
        """The mean loss of a batch, and its gradient with the matrices' shapes."""
        _, hid, out = self.matrices
        grads = [[[0.0] * width for _ in range(n)] for n, width, _ in self.rows_of]
        g_emb, g_hid, g_out = grads
        total, scale, e = 0.0, 1.0 / len(batch), self.embed
        for row in batch:
            x, h, z = self.forward(row[:-1])
            top = max(z)
            p = [math.exp(s - top) for s in z]
            norm = sum(p)
            total += math.log(norm) + top - z[row[-1]]
            dh = [0.0] * self.hidden
            for i, pi in enumerate(p):
                d = (pi / norm - (i == row[-1])) * scale
                if -1e-6 < d < 1e-6:
                    continue  # too small to matter, and most of them are
                g_out[i] = [g + d * v for g, v in zip(g_out[i], h)]
                dh = [a + d * w for a, w in zip(dh, out[i])]
            dx = [0.0] * (len(x) - 1)
            for j, d in enumerate(dh):
                d *= 1 - h[j] * h[j]
                g_hid[j] = [g + d * v for g, v in zip(g_hid[j], x)]
                dx = [a + d * w for a, w in zip(dx, hid[j])]
            for k, c in enumerate(row[:-1]):
                g_emb[c] = [g + v for g, v in zip(g_emb[c], dx[k * e : k * e + e])]
        return total * scale, grads

    def step(self, batch, lr, more):
        """One step; returns the sum over all ranks of the loss and of more."""
        loss, grads = self.backward(batch)
        flat = self.net.add_up([v for m in grads for row in m for v in row] + [loss] + more)
        told = flat[self.size() :]
        self.adam(flat[: self.size()], lr)
        return told

    def adam(self, grad, lr, b1=0.9, b2=0.99):
        self.t += 1
        share = 1.0 / self.world
        rate = lr * math.sqrt(1 - b2**self.t) / (1 - b1**self.t)
        self.m = [b1 * m + (1 - b1) * share * g for m, g in zip(self.m, grad)]
        self.v = [b2 * v + (1 - b2) * share * share * g * g for v, g in zip(self.v, grad)]
        change = [rate * m / (math.sqrt(v) + 1e-8) for m, v in zip(self.m, self.v)]
        i = 0
        for matrix in self.matrices:
            for r, row in enumerate(matrix):
                matrix[r] = [w - d for w, d in zip(row, change[i : i + len(row)])]
                i += len(row)

    def add_up(self, values):
        return self.net.add_up(values)

    def share(self, values):
        """Rank 0's values, on every rank."""
        return self.add_up([v if self.rank == 0 else 0.0 for v in values])

    def save(self, path, state):
        with open(path, "w") as f:
            json.dump({**state, "matrices": self.matrices, "m": self.m, "v": self.v, "t": self.t}, f)

    def load(self, path):
        """Take over a checkpoint that only rank 0 has, on every rank."""
        text = ""
        if self.rank == 0 and os.path.exists(path):
            with open(path) as f:
                text = f.read()
        text = self.net.share_text(text)
        if not text:
            return None
        state = json.loads(text)
        self.matrices, self.m, self.v, self.t = state["matrices"], state["m"], state["v"], state["t"]
        return state

    def close(self, code=0):
        for conn in self.net.peers + ([self.net.head] if self.net.head else []):
            conn.close()
        sys.exit(code)
