"""ray start, with more patience: SECONDS, then the arguments of ray.

A machine that has other work needs longer than Ray waits, and Ray has no setting
for that: its raylet gives up when the two agents, programs in Python, have not
told their ports after 15 seconds, and ray start when it has not seen the raylet
after 30. So the ports, which are chosen before, are told for the agents; the
raylet is waited for as long as it lives. A Ray that has all this by other names
is started as it is.

Ray wants the address of its node. Of the machines of a job that waits in a queue
only the names are told, so the name is looked up here."""
import inspect
import ipaddress
import socket
import sys
import time

patience = float(sys.argv[1])
sys.argv[:2] = ["ray"]

import ray._private.node as node
import ray._private.services as services
import ray._raylet as raylet
from ray.scripts.scripts import main

PORTS = {"METRICS_AGENT_PORT_NAME": "metrics_agent_port", "METRICS_EXPORT_PORT_NAME": "metrics_export_port",
         "DASHBOARD_AGENT_LISTEN_PORT_NAME": "dashboard_agent_listen_port", "RUNTIME_ENV_AGENT_PORT_NAME": "runtime_env_agent_port"}
started = []
NODE = next((word.partition("=")[2] for word in sys.argv if word.startswith("--node-name=")), "")


def tell_ports(given):
    for constant, argument in PORTS.items():
        name, port = getattr(raylet, constant, None), given.get(argument)
        if name and port and hasattr(raylet, "persist_port"):
            raylet.persist_port(given["session_dir"], given["node_id"], name, port)


def start_raylet(*args, **kwargs):
    try:
        tell_ports(inspect.signature(begin).bind(*args, **kwargs).arguments)
    except (AttributeError, KeyError, TypeError) as e:
        print("Ray's agents have Ray's own time to start: %r" % e, file=sys.stderr)
    info = begin(*args, **kwargs)
    started.append(getattr(info, "process", None))
    return info


def get_node(*args, **kwargs):
    end = time.monotonic() + patience
    while True:
        try:
            return look(*args, **kwargs)
        except RuntimeError:
            dead = [p.returncode for p in started if p is not None and p.poll() is not None]
            if dead:
                sys.exit("the raylet has ended with %s before its node had joined: raylet.err and raylet.out in the directory of logs say why" % dead[0])
            if time.monotonic() > end:
                raise
        time.sleep(0.2)


def own_name(self, suffix="", prefix="", directory_name=None):
    """A socket is named after its node. By itself Ray takes a name that no file has at
    that moment, and of nodes of one machine that start together two take one."""
    return free_name(self, suffix, prefix if suffix else "%s-%s" % (prefix, NODE), directory_name)


def with_address(word):
    option, _, name = word.partition("=")
    if option != "--node-ip-address":
        return word
    try:
        ipaddress.ip_address(name)
        return word
    except ValueError:
        found = [f[4][0] for f in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)]
    found.sort(key=lambda address: ":" in address)
    # By /etc/hosts a machine's own name may lead to itself alone. Of 127.0.0.1 Ray makes
    # an address at which others find it.
    return option + "=" + ("127.0.0.1" if ipaddress.ip_address(found[0].split("%")[0]).is_loopback else found[0])


sys.argv[1:] = [with_address(word) for word in sys.argv[1:]]
free_name = getattr(node.Node, "_make_inc_temp", None)
if NODE and free_name:
    node.Node._make_inc_temp = own_name
begin, look = getattr(services, "start_raylet", None), getattr(services, "get_node", None)
if begin and look:
    services.start_raylet, services.get_node = start_raylet, get_node
main()
