"""Memory of a three-broker cluster with 1,000 partitions of three replicas."""

from __future__ import annotations

from benchmarks.figures import in_child, line, sized

PARTITIONS = sized(1000, 20)

CODE = """
import gc, json, os, sys
import fakekafka
from fakekafka import Cluster
import confluent_kafka
def rss():
    gc.collect()
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
before = rss()
with Cluster(brokers=3) as cluster:
    cluster.create_topic("many", partitions=int(sys.argv[1]), replication_factor=3)
    after = rss()
print(json.dumps({"mb": (after - before) / 1e6}))
"""


def measure() -> None:
    """Print the resident memory on top of the interpreter with the package imported."""
    used = in_child(CODE, PARTITIONS)["mb"]
    line(f"3 brokers, {PARTITIONS:,} partitions x RF 3", f"{used:.1f} MB", "<= 30 MB", used <= 30)
