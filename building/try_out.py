"""Tries out an installed distribution: starts a cluster and checks that it keeps its records.

Runs with the Python of an empty environment and imports nothing but the installed package.
"""

from fakekafka import Cluster, builds

with Cluster(brokers=3, topics={"orders": 1}) as cluster:
    cluster.produce("orders", b"first")
    cluster.broker("leader:orders-0").kill()
    cluster.produce("orders", b"second")
    kept = [record.value for record in cluster.records("orders", 0)]
if kept != [b"first", b"second"]:
    raise SystemExit(f"the cluster kept {kept}, not two records")
print(f"starts a cluster ({builds.running})")
