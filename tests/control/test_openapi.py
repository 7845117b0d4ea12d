"""The OpenAPI document is valid, complete and true of the server."""

from __future__ import annotations

import pytest
from fakekafka import Cluster, __version__
from fakekafka.control.openapi import openapi, operation_id
from fakekafka.control.operations import OPERATIONS
from fakekafka.testing.handles.broker import BrokerHandle
from fakekafka.testing.handles.controller import ControllerHandle
from fakekafka.testing.handles.network import NetworkHandle
from fakekafka.testing.handles.zookeeper import ZooKeeperHandle
from openapi_spec_validator import OpenAPIV31SpecValidator


def test_the_document_is_valid() -> None:
    """The document passes a validator of OpenAPI 3.1."""
    errors = [error.message for error in OpenAPIV31SpecValidator(openapi()).iter_errors()]
    assert errors == []


def test_every_operation_has_a_name_of_its_own() -> None:
    """Every operation has a unique name, after which generated clients name their methods."""
    names = [operation_id(operation) for operation in OPERATIONS]
    assert len(set(names)) == len(names)


def test_every_operation_has_a_summary_a_tag_and_a_description() -> None:
    """Every operation has a summary, a tag and a description of its result; all tags are
    described."""
    tags = {tag["name"] for tag in openapi()["tags"]}
    for operation in OPERATIONS:
        assert operation.tag in tags
        assert operation.summary
        assert operation.gives
    assert tags == {operation.tag for operation in OPERATIONS}


def test_query_parameters_can_be_parsed_from_text() -> None:
    """GET and DELETE have no body, so that their parameters can be read from text."""
    for operation in OPERATIONS:
        if not operation.takes_body:
            for parameter in operation.parameters:
                kind = parameter.kind
                example = {int: 1, bool: True}.get(kind.type, kind.example or "x")
                read = kind.parse_text(str(example).lower() if example is True else str(example))
                assert kind.read(read) is not None, (operation.path, parameter)


OFFERED = {
    "Cluster": {
        "alter_config": "POST /topics/{topic}/config", "bootstrap_servers": "GET /cluster",
        "broker": "GET /brokers/{broker}", "consume": "GET /topics/{topic}/{partition}/consume",
        "controller": "GET /controller", "create_partitions": "POST /topics/{topic}/partitions",
        "create_topic": "POST /topics", "create_topics": "POST /create_topics",
        "delete_topic": "DELETE /topics/{topic}", "elect_leaders": "POST /elect_leaders",
        "failures": "GET /cluster", "inject": "POST /injections",
        "injections": "GET /injections", "injection": "GET /injections/{injection}",
        "kafka_version": "GET /cluster",
        "broker_ids": "GET /brokers", "group": "GET /groups/{group}",
        "wait_for_leader": "POST /wait", "wait_for_in_sync": "POST /wait",
        "wait_for_records": "POST /wait", "network": "GET /network", "observe": "GET /messages",
        "partition": "GET /topics/{topic}/{partition}",
        "produce": "POST /topics/{topic}/{partition}/records",
        "reassign_partitions": "POST /reassign_partitions", "reassignments": "GET /reassignments",
        "records": "GET /topics/{topic}/{partition}/records", "reset": "POST /reset",
        "topics": "GET /topics", "wait_until": "POST /wait", "zookeeper": "GET /zookeeper/tree",
        "zookeeper_connect": "GET /zookeeper", "ask": "POST /brokers/{broker}/ask",
        "wait_for_group": "POST /wait_for_group",
        "memory": "GET /cluster",
        "log_bytes": "GET /topics/{topic}/{partition}/log",
    },
    "BrokerHandle": {
        "begin_shutdown": "POST /brokers/{broker}/shutdown",
        "log_dirs": "GET /brokers/{broker}/log_dirs",
        "clock_shift_ms": "GET /brokers/{broker}",
        "shift_clock": "POST /brokers/{broker}/shift_clock",
        "clock_rate": "GET /brokers/{broker}",
        "set_clock_rate": "POST /brokers/{broker}/set_clock_rate",
        "fail_log_dir": "POST /brokers/{broker}/fail_log_dir", "id": "GET /brokers/{broker}",
        "is_alive": "GET /brokers/{broker}", "is_paused": "GET /brokers/{broker}",
        "move_replica": "POST /brokers/{broker}/move_replica",
        "kill": "POST /brokers/{broker}/kill", "metrics": "GET /brokers/{broker}/metrics",
        "name": "GET /brokers/{broker}", "pause": "POST /brokers/{broker}/pause",
        "port": "GET /brokers/{broker}", "power_off": "POST /brokers/{broker}/power_off",
        "repair_log_dir": "POST /brokers/{broker}/repair_log_dir",
        "restart": "POST /brokers/{broker}/restart", "resume": "POST /brokers/{broker}/resume",
        "shutdown": "POST /brokers/{broker}/shutdown", "start": "POST /brokers/{broker}/start",
        "state": "GET /brokers/{broker}",
    },
    "ControllerHandle": {
        "epoch": "GET /controller", "id": "GET /controller", "metrics": "GET /controller",
        "move_to": "POST /controller/move_to/{broker}",
        "partition_state": "GET /topics/{topic}/{partition}",
        "replica_state": "GET /topics/{topic}/{partition}", "resign": "POST /controller/resign",
    },
    "NetworkHandle": {
        "bandwidth": "POST /network/bandwidth",
        "drop": "POST /network/drop", "heal": "POST /network/heal",
        "hold": "POST /network/holds", "isolate": "POST /network/isolate",
        "latency": "POST /network/latency", "partition": "POST /network/partition",
        "release": "POST /network/release", "restore": "POST /network/restore",
        "rules": "GET /network",
    },
    "ZooKeeperHandle": {
        "children": "GET /zookeeper/node", "create": "POST /zookeeper/node",
        "delete": "DELETE /zookeeper/node",
        "expire_session": "POST /zookeeper/expire_session/{broker}",
        "get": "GET /zookeeper/node", "server": "GET /zookeeper/servers",
        "set": "PUT /zookeeper/node", "stat": "GET /zookeeper/node",
        "tree": "GET /zookeeper/tree",
    },
}  # fmt: skip
"""Methods of the Python API, with the operation that offers each over HTTP."""

NOT_OFFERED = {
    "Cluster": {
        "behaviour": "internal", "call": "internal", "create_initial_topics": "internal",
        "create_shaped_topic": "internal",
        "processes": "internal", "running": "internal", "runtime": "internal",
        "zookeepers": "internal", "usual_latency": "internal",
        "start": "serve starts it", "stop": "serve ends it", "is_started": "serve starts it",
        "bootstrap_servers_of": "serve prints it",
        "security": "serve is given it; certificates: POST /client_certificates",
        "save": "serve --trace writes it", "trace": "serve --trace writes it",
    },
    "ZooKeeperHandle": {"end_session": "internal", "require_server": "internal"},
    "BrokerHandle": {"ports": "bootstrap servers of each listener are printed by serve"},
}  # fmt: skip
KINDS_OF_HANDLES = {
    "Cluster": Cluster,
    "BrokerHandle": BrokerHandle,
    "ControllerHandle": ControllerHandle,
    "NetworkHandle": NetworkHandle,
    "ZooKeeperHandle": ZooKeeperHandle,
}


@pytest.mark.parametrize("name", OFFERED)
def test_every_operation_of_a_cluster_is_offered(name: str) -> None:
    """Every method of a cluster is offered or is listed with the reason why not; a new method needs
    one of both."""
    public = {member for member in dir(KINDS_OF_HANDLES[name]) if not member.startswith("_")}
    excused = set(NOT_OFFERED.get(name, {}))
    assert public - set(OFFERED[name]) - excused == set()
    assert (set(OFFERED[name]) | excused) - public == set()
    there = {f"{operation.method} {operation.path}" for operation in OPERATIONS}
    assert set(OFFERED[name].values()) - there == set()


def test_the_document_is_the_same_every_time() -> None:
    assert openapi() == openapi()


def test_the_openapi_document_lists_every_operation() -> None:
    """The document lists every operation with its fields and the parameters of its path."""
    document = openapi()
    assert document["info"]["version"] == __version__
    listed = {(method.upper(), path) for path, ways in document["paths"].items() for method in ways}
    assert listed == {(operation.method, operation.path) for operation in OPERATIONS}
    create = document["paths"]["/topics"]["post"]["requestBody"]["content"]["application/json"]
    assert create["schema"]["required"] == ["name"]
    assert create["schema"]["properties"]["partitions"]["type"] == "integer"
    kill = document["paths"]["/brokers/{broker}/kill"]["post"]
    assert [parameter["name"] for parameter in kill["parameters"]] == ["broker"]
