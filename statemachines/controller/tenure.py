"""Controller of the cluster as far as this broker knows."""

from __future__ import annotations

NO_CONTROLLER = -1


class Tenure:
    """This broker, and the broker last seen in ``/controller``."""

    __slots__ = ("active_controller_id", "broker_id")

    def __init__(self, broker_id: int) -> None:
        self.broker_id: int = broker_id
        self.active_controller_id: int = NO_CONTROLLER

    @property
    def is_active(self) -> bool:
        """True while this broker is the controller."""
        return self.active_controller_id == self.broker_id

    def end(self) -> None:
        """Nobody is known to be the controller."""
        self.active_controller_id = NO_CONTROLLER
