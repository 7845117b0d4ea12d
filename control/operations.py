"""The control API: the methods of ``Cluster`` over HTTP and JSON, for tests in any language.

The routes of the application and the OpenAPI document at ``/openapi.json`` both derive from one
table of operations. Bodies are JSON objects; an answer is a JSON value. Errors are 400 for misuse,
409 with Kafka's error code for requests that the cluster refused, 404 for an unknown path, and 405
for the wrong method.
"""

from __future__ import annotations

from .broker_operations import BROKER_OPERATIONS
from .cluster_operations import CLUSTER_OPERATIONS
from .fault_operations import FAULT_OPERATIONS
from .group_operations import GROUP_OPERATIONS
from .operation import Operation
from .security_operations import SECURITY_OPERATIONS
from .topic_operations import TOPIC_OPERATIONS
from .zookeeper_operations import ZOOKEEPER_OPERATIONS

OPERATIONS: tuple[Operation, ...] = (
    *CLUSTER_OPERATIONS,
    *BROKER_OPERATIONS,
    *TOPIC_OPERATIONS,
    *GROUP_OPERATIONS,
    *FAULT_OPERATIONS,
    *ZOOKEEPER_OPERATIONS,
    *SECURITY_OPERATIONS,
)
