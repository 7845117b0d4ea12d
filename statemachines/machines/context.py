"""The controller's context, its view of the cluster in memory (docs/kafka/controller-state.md).

Theory of operation. The context is loaded at failover, kept current by the event handlers and
cleared at resignation. It holds two kinds of state that must be kept in step:

* what ZooKeeper stores: registered brokers, and topics with their assignments and leadership;
* the states of the two state machines, which decide which transitions are legal.

Source: Kafka's ``ControllerContext``; names are Kafka's in snake case.
"""

from __future__ import annotations

from ...protocol.host import StateListener
from ...protocol.versions import Behaviour
from .known_topics import KnownTopics
from .machine_states import MachineStates
from .registered_brokers import RegisteredBrokers


class ControllerContext:
    """The controller's context, in three parts: brokers, topics, and machine states."""

    def __init__(self, behaviour: Behaviour, state_listener: StateListener | None = None) -> None:
        self.behaviour: Behaviour = behaviour
        self.state_listener: StateListener | None = state_listener
        self.epoch: int = 0
        """Controller epoch of this tenure; 0 while this broker is not the controller."""
        self.epoch_zk_version: int = 0
        """Version of ``/controller_epoch`` that this tenure's writes to ZooKeeper check."""
        self.unclean_leader_elections: int = 0
        """Total number of unclean elections in all tenures (``UncleanLeaderElectionsPerSec``)."""
        self.brokers: RegisteredBrokers = RegisteredBrokers()
        self.topics: KnownTopics = KnownTopics(behaviour, self.brokers, state_listener)
        self.states: MachineStates = MachineStates(behaviour, self.topics, state_listener)

    def reset_context(self) -> None:
        """Clear everything except the count of unclean elections, when the controller resigns."""
        self.epoch = 0
        self.epoch_zk_version = 0
        self.brokers.forget()
        self.topics.forget()
        self.states.forget()
