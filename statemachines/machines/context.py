"""The controller's memory (docs/kafka/controller-state.md).

Theory of operation. The memory is filled at failover, kept up by the event handlers and forgotten
at resignation. Two kinds of state meet here and must be kept in step:

* what ZooKeeper says: registered brokers, and the topics with assignments and leadership;
* states of the two state machines, which decide what may happen next.

Source: Kafka's ``ControllerContext``; names are Kafka's in snake case.
"""

from __future__ import annotations

from ...protocol.host import StateListener
from ...protocol.versions import Behaviour
from .known_topics import KnownTopics
from .machine_states import MachineStates
from .registered_brokers import RegisteredBrokers


class ControllerContext:
    """The controller's memory, in three parts; ``reset_context`` empties it."""

    def __init__(self, behaviour: Behaviour, state_listener: StateListener | None = None) -> None:
        self.behaviour: Behaviour = behaviour
        self.state_listener: StateListener | None = state_listener
        self.epoch: int = 0
        """Controller epoch of this tenure; 0 when not controller."""
        self.epoch_zk_version: int = 0
        """Version of ``/controller_epoch`` this tenure's writes are guarded by."""
        self.unclean_leader_elections: int = 0
        """Elections of a leader outside the ISR, ever (``UncleanLeaderElectionsPerSec``)."""
        self.brokers: RegisteredBrokers = RegisteredBrokers()
        self.topics: KnownTopics = KnownTopics(behaviour, self.brokers, state_listener)
        self.states: MachineStates = MachineStates(behaviour, self.topics, state_listener)

    def reset_context(self) -> None:
        """Forget everything except the count of unclean elections (at resignation)."""
        self.epoch = 0
        self.epoch_zk_version = 0
        self.brokers.forget()
        self.topics.forget()
        self.states.forget()
