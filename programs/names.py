"""Lookup of machines of the simulated network by name and by address."""

from __future__ import annotations

import socket
from collections.abc import Callable

from ..protocol.errors import did_you_mean
from .tcp import Machine, TcpNetwork

CLUSTER = "kafka"
"""Name that resolves to all brokers."""
_OWN = ("", "localhost", "127.0.0.1", "::1", "0.0.0.0", "::")


class Names:
    """Resolves names of machines to addresses, as a name server of the network."""

    def __init__(self, tcp: TcpNetwork, brokers: Callable[[], list[str]]) -> None:
        """``brokers`` returns the names of the cluster's brokers."""
        self.tcp = tcp
        self._brokers = brokers
        self.machines: dict[str, Machine] = {}
        self._by_address: dict[str, Machine] = {}

    def add(self, name: str, network: int) -> Machine:
        """Add a machine to the network; brokers and programs have separate address ranges."""
        machine = self.machines.get(name)
        if machine is None:
            number = 1 + sum(1 for one in self.machines.values() if f".{network}." in one.address)
            machine = Machine(name, f"10.{network}.{number // 250}.{1 + number % 250}")
            self.machines[name] = machine
            self._by_address[machine.address] = machine
        return machine

    def addresses(self, host: str | None, own: Machine) -> list[str]:
        """Return the addresses of a name, as seen by ``own``; raise ``gaierror`` without any."""
        if host is None or host in _OWN or host == own.name:
            return [own.address]
        if host == CLUSTER:
            return [self.machines[name].address for name in self._brokers()]
        if host in self.machines:
            return [self.machines[host].address]
        if host in self._by_address:
            return [host]
        known = [CLUSTER, *self.machines]
        raise socket.gaierror(
            socket.EAI_NONAME,
            f"Name or service not known: {host!r} in {own.name}{did_you_mean(host, known)}; "
            f"inside a simulation there are {', '.join(known)}",
        )

    def machine_at(self, address: str) -> Machine:
        return self._by_address[address]

    def name_of(self, address: str) -> str:
        """Return the name of the machine with an address, or the address if there is no machine."""
        machine = self._by_address.get(address)
        return address if machine is None else machine.name
