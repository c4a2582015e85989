"""Looks for a while at a Ray cluster: ADDRESS NODES GPUS SECONDS. It exits with 0
once that has so many nodes and GPUs, with 3 when the head has waited SECONDS for
them, else with 1, and says what is missing. NODES 0: the head alone is enough."""
import socket
import sys
import time

address, count, gpus, patience = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])


def nodes():
    """The live nodes by their names, and since when there is a head."""
    try:
        from ray._raylet import GcsClient

        found = GcsClient(address=address).get_all_node_info(timeout=5)
        alive = {n.node_name: n for n in found.values() if n.state == 0}
        return alive, min([n.start_time_ms / 1000 for n in alive.values() if n.is_head_node], default=None)
    except (ImportError, AttributeError, TypeError):  # this Ray has it by another name
        import ray

        ray.init(address=address, log_to_driver=False, logging_level="CRITICAL")
        alive = {n["NodeName"]: n for n in ray.nodes() if n["Alive"]}
        ray.shutdown()
        return alive, time.time() if alive else None


def resource(node, name):
    total = node["Resources"] if isinstance(node, dict) else node.resources_total
    return dict(total).get(name, 0)


host, port = address.rsplit(":", 1)
try:  # a client of Ray says more than one wants when nobody listens
    socket.create_connection((host.strip("[]"), int(port)), 5).close()
except OSError as e:
    print("node0: Ray's head does not answer at %s yet: %s" % (address, e))
    sys.exit(1)
end = time.time() + 10
while True:
    try:
        alive, since = nodes()
    except Exception as e:  # of a head that is just starting
        print("node0: Ray's head at %s is not ready: %s" % (address, (str(e) or repr(e)).splitlines()[0]))
        sys.exit(1)
    missing = [name for name in ("node%d" % i for i in range(max(count, 1))) if name not in alive]
    have = sum(resource(n, "GPU") for n in alive.values())
    if not missing and (count == 0 or have >= gpus):
        sys.exit(0)
    late = since is not None and time.time() - since > patience
    if late or time.time() > end:
        break
    time.sleep(0.25)
for name in missing:
    print("%s has not joined Ray%s: the log of its launcher says why" % (name, " within %g s" % patience if late else ""))
if have < gpus:
    print("%g of %g GPUs are there" % (have, gpus))
sys.exit(3 if late else 1)
