"""Clusters for the tests of confluent-kafka-python, instead of those that trivup starts."""

from __future__ import annotations

import json
import os
from typing import Any


class KafkaCluster:
    """A cluster that runs already, on its listener with SASL."""

    def __init__(self, **_conf: Any) -> None:
        self._conf = json.loads(os.environ["FAKEKAFKA_SERVED"])

    def wait_operational(self) -> None:
        pass

    def client_conf(self) -> dict[str, str]:
        return dict(self._conf)

    def stop(self, cleanup: bool = True) -> None:
        pass
