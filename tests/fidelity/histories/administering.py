"""Steps of administration other than of topics: quotas, ACLs, descriptions of configurations."""

from __future__ import annotations

from typing import Any

from fakekafka.tests.fidelity.histories.account import Account

_TOPIC = 2
_LITERAL = 3
_ANY = 1
_ALLOW = 3
_READ, _WRITE = 3, 4
_OPERATIONS = {"read": _READ, "write": _WRITE}
_SHOWN = ("min.insync.replicas", "unclean.leader.election.enable", "message.timestamp.type")
_SPREAD_S = 0.4


class Administration:
    """Carries out the steps of administrators."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._stage = account.stage

    def quota(self, user: str, value: int) -> None:
        """Set the rate at which a user may produce; 0 removes the quota."""
        entity = [{"entityType": "user", "entityName": self._account.own(user)}]
        change = {"key": "producer_byte_rate", "value": float(value), "remove": value == 0}
        told = self._stage.ask(
            self._anybody(),
            "AlterClientQuotas",
            entries=[{"entity": entity, "ops": [change]}],
            validateOnly=False,
        )
        self._account.answer(told)

    def quotas(self, user: str) -> None:
        match = {"entityType": "user", "matchType": 0, "match": self._account.own(user)}

        def told() -> Any:
            return self._stage.ask(
                self._anybody(), "DescribeClientQuotas", components=[match], strict=True
            )

        self._account.observe("told", told)

    def permit(self, topic: str, operation: str, user: str) -> None:
        """Allow a user an operation on a topic."""
        told = self._stage.ask(
            None,
            "CreateAcls",
            creations=[
                {
                    "resourceType": _TOPIC,
                    "resourceName": topic,
                    "resourcePatternType": _LITERAL,
                    "principal": f"User:{self._account.own(user)}",
                    "host": "*",
                    "operation": _OPERATIONS[operation],
                    "permissionType": _ALLOW,
                }
            ],
        )
        self._account.answer(told)
        self._stage.pass_time(_SPREAD_S)

    def revoke(self, topic: str, user: str) -> None:
        """Delete all ACLs of a user on a topic."""
        told = self._stage.ask(None, "DeleteAcls", filters=[self._filter(topic, user)])
        if isinstance(told, dict):
            for result in told["filterResults"]:
                result["matchingAcls"].sort(key=lambda acl: acl["operation"])
        self._account.answer(told)
        self._stage.pass_time(_SPREAD_S)

    def acls(self, user: str) -> None:
        def told() -> Any:
            tree = self._stage.ask(self._anybody(), "DescribeAcls", **self._filter(None, user))
            if not isinstance(tree, dict):
                return tree
            entries = [
                f"{resource['resourceName']} {acl['operation']} {acl['permissionType']}"
                for resource in tree["resources"]
                for acl in resource["acls"]
            ]
            return {"errorCode": tree["errorCode"], "entries": sorted(entries)}

        self._account.observe("told", told)

    def _filter(self, topic: str | None, user: str) -> dict[str, Any]:
        return {
            "resourceTypeFilter": _TOPIC,
            "resourceNameFilter": topic,
            "patternTypeFilter": _LITERAL,
            "principalFilter": f"User:{self._account.own(user)}",
            "hostFilter": None,
            "operation": _ANY,
            "permissionType": _ANY,
        }

    def configs(self, topic: str) -> None:
        """Describe some configurations of a topic."""

        def told() -> Any:
            resource = {
                "resourceType": _TOPIC,
                "resourceName": topic,
                "configurationKeys": list(_SHOWN),
            }
            return self._stage.ask(self._anybody(), "DescribeConfigs", resources=[resource])

        self._account.observe("told", told)

    def _anybody(self) -> int:
        """Return the first broker that runs; -1 if none does."""
        side = self._stage.side
        return min(side.up - side.frozen, default=-1)
