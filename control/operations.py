"""The control API: what ``Cluster`` can do, as HTTP and JSON, for tests in any language.

One table of operations feeds the routes of the application and the OpenAPI document at
``/openapi.json``. Bodies are JSON objects; an answer is a JSON value. Errors: 400 for misuse, 409
with Kafka's error code for what the cluster refused, 404 for an unknown path, 405 for the wrong
method.
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
