"""The active controller of the cluster, as far as this broker knows."""

from __future__ import annotations

NO_CONTROLLER = -1


class ActiveController:
    """This broker, and the broker last seen in ``/controller``."""

    def __init__(self, broker_id: int) -> None:
        self.broker_id: int = broker_id
        self.id: int = NO_CONTROLLER

    @property
    def is_this_broker(self) -> bool:
        """True while this broker is the controller."""
        return self.id == self.broker_id

    def forget(self) -> None:
        """Forget which broker is the controller."""
        self.id = NO_CONTROLLER
