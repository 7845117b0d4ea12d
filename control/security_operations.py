"""Operations on security: client certificates for mutual TLS, and ACLs."""

from __future__ import annotations

from typing import Any

from ..protocol.errors import NotThereYet
from ..testing.parameters.kinds import FLAG, STRING
from ..testing.parameters.parameter import optional, required
from .operation import Operation, ServedCluster
from .section import Section


def _client_certificate(served: ServedCluster, arguments: dict[str, Any]) -> dict[str, Any]:
    made = served.cluster.security.client_certificate(**arguments)
    return {
        "name": made.name,
        "certificate_path": str(made.certificate_path),
        "key_path": str(made.key_path),
        "keystore_path": str(made.keystore_path),
        "keystore_password": made.keystore_password,
        "certificate_pem": made.certificate_pem,
        "key_pem": made.key_pem,
        "ca_pem": served.cluster.security.ca_pem,
    }


def _acls(served: ServedCluster, _arguments: dict[str, Any]) -> dict[str, Any]:
    processes = served.cluster.processes.values()
    if not any(process.spec.config["authorizer.class.name"] for process in processes):
        return {"has_authorizer": False, "acls": []}
    if not served.cluster.running.living_brokers():
        raise NotThereYet("no broker is running, so its ACLs are unknown; start one")
    shown = [
        {
            "principal": acl.entry.principal,
            "host": acl.entry.host,
            "operation": acl.entry.operation.name,
            "permission": acl.entry.permission.name,
            "resource_type": acl.resource.type.name,
            "resource": acl.resource.name,
            "pattern": acl.resource.pattern.name,
        }
        for acl in served.cluster.security.acls()
    ]
    return {"has_authorizer": True, "acls": sorted(shown, key=lambda acl: [*acl.values()])}


_SECURITY = Section("security")

SECURITY_OPERATIONS: tuple[Operation, ...] = (
    _SECURITY.get(
        "/acls",
        "whether there is an authorizer, and the ACLs that it knows",
        _acls,
        gives="has_authorizer and an array of ACLs",
    ),
    _SECURITY.post(
        "/client_certificates",
        "make a certificate for a client of a listener with mutual TLS",
        _client_certificate,
        required("common_name", STRING),
        optional("organization", STRING),
        optional("expired", FLAG, "whether its time is over", False),
        optional("foreign", FLAG, "whether no broker trusts it", False),
        gives="the certificate, its key and the authority: paths and PEM",
    ),
)
