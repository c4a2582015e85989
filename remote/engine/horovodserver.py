"""HOST PORT NODE:RANKS,…: the server by which Horovod's ranks find each other.

horovodrun starts the same one beside itself, at a port that it alone knows."""
import sys

from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
from horovod.runner.http.http_server import RendezvousHandler, RendezvousHTTPServer

host, port, nodes = sys.argv[1:]
hosts = parse_hosts(nodes)
# The name of a node may be another address on the node itself.
server = RendezvousHTTPServer((host if host.startswith("127.") else "", int(port)), RendezvousHandler, 0)
server.daemon_threads = True
server.init(get_host_assignments(hosts, sum(h.slots for h in hosts)))
server.serve_forever()
