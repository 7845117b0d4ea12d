"""Memory for 1,000 idle clients that are connected to a cluster."""

from __future__ import annotations

from benchmarks.figures import in_child, line, sized

COUNT = sized(1000, 20)
MB_MAX = 20

CODE = """
import gc, json, os, resource, subprocess, sys
from fakekafka import Cluster
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
CLIENTS = '''
import gc, os, resource, socket, struct, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
def rss():
    gc.collect()
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
host, _, port = sys.argv[1].rpartition(":")
request = struct.pack(">ihhih4s", 14, 18, 0, 1, 4, b"idle")  # ApiVersions 0
before, sockets = rss(), []
for _ in range(int(sys.argv[2])):
    sockets.append(socket.create_connection((host, int(port))))
    sockets[-1].sendall(request)
    size, = struct.unpack(">i", sockets[-1].recv(4, socket.MSG_WAITALL))
    assert len(sockets[-1].recv(size, socket.MSG_WAITALL)) == size
print(rss() - before, flush=True)
sys.stdin.read()
'''
def rss():
    gc.collect()
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
def connected(count):
    child = subprocess.Popen([sys.executable, "-c", CLIENTS, cluster.bootstrap_servers, str(count)],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    told = child.stdout.readline()
    if not told:
        sys.exit(1)  # the clients have said why, on the standard error of both
    return child, int(told)
with Cluster(brokers=1) as cluster:
    first, _ = connected(10)  # what the first client of all costs
    before = rss()
    many, client_bytes = connected(int(sys.argv[1]))
    cluster_bytes = rss() - before
    for child in (first, many):
        child.communicate("")
print(json.dumps({"cluster_mb": cluster_bytes / 1e6, "client_mb": client_bytes / 1e6}))
"""


def measure() -> None:
    """Print the resident memory of the connections in the cluster, and in the clients' process."""
    used = in_child(CODE, COUNT)
    held = used["cluster_mb"]
    line(f"{COUNT:,} idle connections", f"{held:.1f} MB", f"<= {MB_MAX} MB", held <= MB_MAX)
    line("  their sockets, in the process of the clients", f"{used['client_mb']:.1f} MB")
