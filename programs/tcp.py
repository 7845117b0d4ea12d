"""TCP over the simulated network, between machines that have names.

A connection has two ends. Each end sends segments, which are delayed as the link is at that moment
and do not overtake each other. The rules of the network act on segments:

- a lossy link loses some, and TCP retransmits them after 200 ms, then 400 ms, and so on;
- on a cut link they wait until the link is restored, as messages do;
- the bandwidth of the link counts their bytes.

A window limits the bytes in flight or unread. While it is full, further bytes wait at the sender,
whose transport is notified. The seed decides how the bytes are split among reads.
"""

from __future__ import annotations

import errno
import os
import random
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ..actors.network.network import Network
    from ..actors.runtime.virtual import VirtualRuntime

Address = tuple[str, int]

WINDOW_BYTES = 256 * 1024
"""Bytes of one direction that may be in flight or unread: the buffers of two kernels."""
_HEADER_BYTES = 52
"""IPv4 and TCP headers with timestamps, counted on links with a bandwidth."""
_FIRST_RETRY_US = 200_000
_RETRIES_MAX = 15
_GIVEN_UP_US = 924_600_000
"""Time after which Linux gives up a connection without acknowledgements (tcp_retries2 = 15)."""
_CONNECT_RETRY_US = 1_000_000
_CONNECT_GIVEN_UP_US = 127_000_000
"""Time after which Linux gives up a connection attempt (tcp_syn_retries = 6)."""
_CUT_PROBABILITY = 0.2
"""Probability that a segment arrives in two parts, split at a place that the seed chooses."""
_CUT_APART_US = 60
"""Maximum time between the two parts of a segment."""
_FIRST_FREE_PORT = 49152


def _os_error(kind: type[OSError], number: int) -> OSError:
    return kind(number, os.strerror(number))


class Reader(Protocol):
    """The user of one end of a connection, such as a transport."""

    def bytes_came(self) -> None:
        """Called when there are bytes to read, or when the peer has ended its direction."""
        ...

    def room_came(self) -> None:
        """Called when there is room again for bytes that wait to be sent."""
        ...

    def lost(self, error: OSError) -> None:
        """Called when the connection is lost."""
        ...

    def sever(self) -> None:
        """Drop the end, because the process is dead."""
        ...


class Machine:
    """A machine of the network: the kernel under a broker, or under a program."""

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.address = address
        self.is_up: bool = True
        """False while the machine has no power, so that its kernel does not answer."""
        self.acceptors: dict[int, Callable[[End], object]] = {}
        """Port to the function that accepts connections to it."""
        self.ends: dict[End, None] = {}
        self._next_port = _FIRST_FREE_PORT
        self._when_up: list[Callable[[], object]] = []

    def free_port(self) -> int:
        """Return a free port, for the client's side of a connection or for port 0 of a server."""
        port = self._next_port
        while port in self.acceptors:
            port += 1
        self._next_port = port + 1 if port < 65535 else _FIRST_FREE_PORT
        return port

    def process_died(self) -> None:
        """End all listeners and reset all connections, because the process has died."""
        self.acceptors.clear()
        for end in tuple(self.ends):
            end.reset()

    def power_lost(self) -> None:
        """Switch the machine off: peers notice only when they send something after its return."""
        self.acceptors.clear()
        self.is_up = False
        for end in tuple(self.ends):
            end.vanish()

    def power_came(self) -> None:
        """Switch the machine on, so that it answers segments that its peers kept retransmitting."""
        self.is_up = True
        waiting, self._when_up = self._when_up, []
        for action in waiting:
            action()

    def find_half_open(self) -> None:
        """Reset connections whose other end vanished in a power failure, as a keepalive would."""
        for end in tuple(self.ends):
            if end.peer is not None and end.peer.has_vanished:
                end.lose(_os_error(ConnectionResetError, errno.ECONNRESET))

    def when_up(self, action: Callable[[], object]) -> None:
        """Call a function once the machine is on, at once if it is."""
        self._when_up.append(action)


class Ether:
    """Carrier of segments and connection attempts between machines."""

    def __init__(self, runtime: VirtualRuntime, seed: int) -> None:
        self.runtime = runtime
        self.network: Network = runtime.network
        self.chance: random.Random = random.Random(f"places at which bytes are cut, {seed}")
        self._waiting: list[tuple[tuple[str, str], Callable[[], object]]] = []
        """Functions to call when a link is restored, each with the link."""
        self._numbered = 0
        self.network.on_heal(self._send_again)

    def next_number(self) -> int:
        self._numbered += 1
        return self._numbered

    def delay_us(self, source: str, target: str, size: int, first_retry_us: int) -> int | None:
        """Return the delay of bytes sent now; None on a cut link."""
        if source == target:
            return 0
        network = self.network
        if network.is_cut(source, target):
            return None
        delay_us = network.transit_us(source, target, size + _HEADER_BYTES)
        loss = network.loss_on(source, target)
        if loss:
            for _ in range(_RETRIES_MAX):
                if self.chance.random() >= loss:
                    break
                delay_us += first_retry_us
                first_retry_us *= 2
        return delay_us

    def when_mended(self, source: str, target: str, action: Callable[[], object]) -> None:
        """Call a function once a cut link is restored."""
        self._waiting.append(((source, target), action))

    def _send_again(self) -> None:
        waiting, self._waiting = self._waiting, []
        for link, action in waiting:
            if self.network.is_cut(*link):
                self._waiting.append((link, action))
            else:
                action()

    # -- connecting ----------------------------------------------------------------------------

    def connect(
        self, machine: Machine, target: Machine, port: int, done: Callable[[End | OSError], bool]
    ) -> None:
        """Connect. ``done`` gets the client's end or an error, and returns whether it takes it."""
        attempt = _Attempt(self, machine, target, port, done)
        attempt.begin()

    def join(self, client: Machine, client_port: int, server: Machine, port: int) -> End:
        """Create both ends of a connection; return the client's end."""
        near = End(self, client, (client.address, client_port), (server.address, port))
        far = End(self, server, (server.address, port), (client.address, client_port))
        near.peer, far.peer = far, near
        near.peer_machine, far.peer_machine = server, client
        client.ends[near] = server.ends[far] = None
        return near


class _Attempt:
    """A connection attempt."""

    def __init__(
        self,
        ether: Ether,
        machine: Machine,
        target: Machine,
        port: int,
        done: Callable[[End | OSError], bool],
    ) -> None:
        self._ether = ether
        self._machine = machine
        self._target = target
        self._port = port
        self._done = done
        self._is_over = False
        self._timer = ether.runtime.call_later(None, _CONNECT_GIVEN_UP_US, self._give_up)

    def begin(self) -> None:
        self._travel(self._machine, self._target, self._asked)

    def _travel(self, source: Machine, target: Machine, then: Callable[[], object]) -> None:
        """Send an empty segment from one machine to the other."""
        if self._is_over:
            return
        ether = self._ether
        delay_us = ether.delay_us(source.name, target.name, 0, _CONNECT_RETRY_US)
        if delay_us is None:
            again = partial(self._travel, source, target, then)
            ether.when_mended(source.name, target.name, again)
        else:
            ether.runtime.call_later(None, delay_us, then)

    def _asked(self) -> None:
        """Handle the arrival of the connection request at the target's kernel."""
        target, machine = self._target, self._machine
        if self._is_over:
            return
        if not target.is_up:
            target.when_up(self.begin)  # no answer until then, or until the attempt is given up
            return
        accept = target.acceptors.get(self._port)
        if accept is None:
            refused = _os_error(ConnectionRefusedError, errno.ECONNREFUSED)
            self._travel(target, machine, lambda: self._end(refused))
            return
        near = self._ether.join(machine, machine.free_port(), target, self._port)
        assert near.peer is not None
        accept(near.peer)
        self._travel(target, machine, lambda: self._end(near))

    def _give_up(self) -> None:
        self._end(_os_error(TimeoutError, errno.ETIMEDOUT))

    def _end(self, outcome: End | OSError) -> None:
        if self._is_over:
            return
        self._is_over = True
        self._timer.cancel()
        if not self._done(outcome) and isinstance(outcome, End):
            outcome.reset()


class End:
    """An end of a connection."""

    def __init__(self, ether: Ether, machine: Machine, name: Address, peer_name: Address) -> None:
        self._ether = ether
        self._number = ether.next_number()
        self.machine = machine
        self.name = name
        self.peer_name = peer_name
        self.peer: End | None = None
        self.peer_machine: Machine = machine
        self.reader: Reader | None = None
        # Outgoing bytes.
        self._unsent: deque[bytes] = deque()
        self.unsent_bytes: int = 0
        """Number of bytes for which the window has no room."""
        self._unread_bytes = 0  # in flight, or unread at the peer
        self._acknowledged: deque[tuple[int, int]] = deque()  # (time known here, bytes)
        self._arrives_us = 0  # arrival time of the last segment sent
        self._is_ended = False  # this end will send no more
        self._stalled: deque[tuple[bytes | None, OSError | None]] = deque()
        self._stalled_since_us = -1
        self._wake: object = None
        # Incoming bytes.
        self._come: deque[bytes] = deque()
        self.has_peer_ended = False
        self._is_closed = False  # closed by its process while the last bytes are being sent
        self._is_gone = False
        self.has_vanished: bool = False
        """True if the end vanished without closing the connection."""

    def __hash__(self) -> int:
        return self._number

    @property
    def is_gone(self) -> bool:
        return self._is_gone

    # -- sending -------------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        """Send bytes in order; bytes for which the window has no room wait here."""
        if self._is_gone or self._is_ended:
            return
        self._unsent.append(data)
        self.unsent_bytes += len(data)
        self._send_on()

    def end(self) -> None:
        """End this direction once all earlier bytes are sent."""
        if not self._is_ended:
            self._is_ended = True
            if not self._unsent and not self._is_gone:
                self._launch(None, None)

    def _send_on(self) -> None:
        room = WINDOW_BYTES - self._unread_bytes
        if self._acknowledged:
            now_us = self._ether.runtime.now
            while self._acknowledged and self._acknowledged[0][0] <= now_us:
                count = self._acknowledged.popleft()[1]
                self._unread_bytes -= count
                room += count
        unsent = self._unsent
        while unsent and room > 0:
            data = unsent.popleft()
            if len(data) > room:
                unsent.appendleft(data[room:])
                data = data[:room]
            room -= len(data)
            self.unsent_bytes -= len(data)
            self._unread_bytes += len(data)
            self._launch(data, None)
        if unsent:
            self._wait_for_room()
        elif self._is_ended:
            self._launch(None, None)
            if self._is_closed:
                self._go()

    def _wait_for_room(self) -> None:
        if self._wake is None and self._acknowledged:
            wait_us = self._acknowledged[0][0] - self._ether.runtime.now
            self._wake = self._ether.runtime.call_later(None, wait_us, self._room_came)

    def _room_came(self) -> None:
        self._wake = None
        if self._is_gone:
            return
        self._send_on()
        if self.reader is not None:
            self.reader.room_came()

    def _launch(self, data: bytes | None, error: OSError | None) -> None:
        """Send a segment: bytes, the end of the direction (no bytes), or a reset (an error)."""
        if self._stalled:
            self._stalled.append((data, error))
            return
        ether = self._ether
        source, target = self.machine.name, self.peer_machine.name
        delay_us = ether.delay_us(source, target, len(data or b""), _FIRST_RETRY_US)
        if delay_us is None:
            self._stalled.append((data, error))
            self._stalled_since_us = ether.runtime.now
            ether.when_mended(source, target, self._launch_stalled)
            ether.runtime.call_later(
                None, _GIVEN_UP_US, partial(self._give_up, self._stalled_since_us)
            )
            return
        runtime, chance = ether.runtime, ether.chance
        now_us = runtime.now
        arrives_us = max(now_us + delay_us, self._arrives_us)
        while data is not None and len(data) > 1 and (drawn := chance.random()) < _CUT_PROBABILITY:
            place = 1 + int(drawn / _CUT_PROBABILITY * (len(data) - 1))
            arrive = partial(self._arrive, data[:place], error)
            runtime.call_later(None, arrives_us - now_us, arrive)
            data = data[place:]
            arrives_us += int(chance.random() * _CUT_APART_US)
        runtime.call_later(None, arrives_us - now_us, partial(self._arrive, data, error))
        self._arrives_us = arrives_us

    def _launch_stalled(self) -> None:
        stalled, self._stalled = self._stalled, deque()
        self._stalled_since_us = -1
        for data, error in stalled:
            self._launch(data, error)

    def _give_up(self, since_us: int) -> None:
        """Give the connection up if no bytes have arrived for a quarter of an hour."""
        if self._stalled and self._stalled_since_us == since_us:
            self._stalled.clear()
            self.lose(_os_error(TimeoutError, errno.ETIMEDOUT))

    # -- arriving ------------------------------------------------------------------------------

    def _arrive(self, data: bytes | None, error: OSError | None) -> None:
        peer = self.peer
        assert peer is not None
        if peer._is_gone or peer._is_closed:
            if data is not None and not self._is_gone:
                self._arrived_nowhere(peer)
            return
        if error is not None:
            peer.lose(error)
            return
        if data is None:
            peer.has_peer_ended = True
        else:
            peer._come.append(data)
        if peer.reader is not None:
            peer.reader.bytes_came()

    def _arrived_nowhere(self, peer: End) -> None:
        """Answer with a reset, as a kernel that does not know the connection; not without power."""
        if peer.machine.is_up:
            peer._answer_reset()
            return
        peer.machine.when_up(peer._answer_reset)
        give_up = partial(self.lose, _os_error(TimeoutError, errno.ETIMEDOUT))
        self._ether.runtime.call_later(None, _GIVEN_UP_US, give_up)

    def read(self, size: int) -> bytes:
        """Return up to ``size`` received bytes; empty if there are none."""
        come = self._come
        if not come:
            return b""
        data = come.popleft()
        if len(data) > size:
            come.appendleft(data[size:])
            data = data[:size]
        if self.peer is not None:
            self.peer._is_read(len(data))
        return data

    @property
    def has_come(self) -> bool:
        """True if there are bytes to read."""
        return bool(self._come)

    def _is_read(self, count: int) -> None:
        """Note that the peer has read bytes, which this end learns after a delay."""
        ether = self._ether
        source, target = self.peer_machine.name, self.machine.name
        if source != target and ether.network.is_cut(source, target):
            ether.when_mended(source, target, partial(self._is_read, count))
            return
        trip_us = 0 if source == target else ether.network.typical_us(source, target)
        self._acknowledged.append((ether.runtime.now + trip_us, count))
        if self._unsent:
            self._wait_for_room()

    # -- ending --------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the end for its process: sent bytes are delivered, incoming bytes are refused."""
        if self._is_gone:
            return
        if self._come:  # the peer must learn that they were not read
            self.reset()
            return
        self._is_closed = True
        self.end()
        if not self._unsent:
            self._go()

    def reset(self) -> None:
        """End the connection at once and reset the peer's end."""
        if self._is_gone:
            return
        self._forget()
        self._launch(None, _os_error(ConnectionResetError, errno.ECONNRESET))
        self._go()

    def vanish(self) -> None:
        """End the connection without notifying the peer."""
        self.has_vanished = True
        self._forget()
        self._stalled.clear()
        self._go()

    def _answer_reset(self) -> None:
        self._launch(None, _os_error(ConnectionResetError, errno.ECONNRESET))

    def lose(self, error: OSError) -> None:
        """End the connection with an error, and notify its process."""
        if self._is_gone:
            return
        self._forget()
        self._go()
        if self.reader is not None:
            self.reader.lost(error)

    def _forget(self) -> None:
        self._unsent.clear()
        self._come.clear()
        self.unsent_bytes = 0
        self._is_ended = True

    def _go(self) -> None:
        self._is_gone = True
        self.machine.ends.pop(self, None)
