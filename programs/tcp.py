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
_RETRANSMISSION_TIMEOUT_US = 924_600_000
"""Time after which Linux gives up a connection without acknowledgements (tcp_retries2 = 15)."""
_CONNECT_RETRY_US = 1_000_000
_CONNECT_TIMEOUT_US = 127_000_000
"""Time after which Linux gives up a connection attempt (tcp_syn_retries = 6)."""
_SPLIT_PROBABILITY = 0.2
"""Probability that a segment arrives in two parts, split at a place that the seed chooses."""
_SPLIT_DELAY_MAX_US = 60
"""Maximum time between the two parts of a segment."""
_FIRST_FREE_PORT = 49152


def _os_error(kind: type[OSError], number: int) -> OSError:
    return kind(number, os.strerror(number))


class EndTransport(Protocol):
    """The user of one end of a connection, such as a transport."""

    def on_readable(self) -> None:
        """Called when there are bytes to read, or when the peer has ended its direction."""
        ...

    def on_writable(self) -> None:
        """Called when there is room again for bytes that wait to be sent."""
        ...

    def on_lost(self, error: OSError) -> None:
        """Called when the connection is lost."""
        ...

    def detach(self) -> None:
        """Drop the end, because the process is dead."""
        ...


class Machine:
    """A machine of the network: the kernel under a broker, or under a program."""

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.address = address
        self.is_up: bool = True
        """False while the machine has no power, so that its kernel does not answer."""
        self.acceptors: dict[int, Callable[[ConnectionEnd], object]] = {}
        """Port to the function that accepts connections to it."""
        self.ends: dict[ConnectionEnd, None] = {}
        self._next_port = _FIRST_FREE_PORT
        self._power_on_callbacks: list[Callable[[], object]] = []

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

    def power_off(self) -> None:
        """Switch the machine off: peers notice only when they send something after its return."""
        self.acceptors.clear()
        self.is_up = False
        for end in tuple(self.ends):
            end.vanish()

    def power_on(self) -> None:
        """Switch the machine on, so that it answers segments that its peers kept retransmitting."""
        self.is_up = True
        waiting, self._power_on_callbacks = self._power_on_callbacks, []
        for action in waiting:
            action()

    def reset_half_open(self) -> None:
        """Reset connections whose other end vanished in a power failure, as a keepalive would."""
        for end in tuple(self.ends):
            if end.peer is not None and end.peer.has_vanished:
                end.fail(_os_error(ConnectionResetError, errno.ECONNRESET))

    def call_when_up(self, action: Callable[[], object]) -> None:
        """Call a function once the machine is on, at once if it is."""
        self._power_on_callbacks.append(action)


class TcpNetwork:
    """Carrier of segments and connection attempts between machines."""

    def __init__(self, runtime: VirtualRuntime, seed: int) -> None:
        self.runtime = runtime
        self.network: Network = runtime.network
        self.rng: random.Random = random.Random(f"places at which bytes are cut, {seed}")
        self._waiting: list[tuple[tuple[str, str], Callable[[], object]]] = []
        """Functions to call when a link is restored, each with the link."""
        self._last_number = 0
        self.network.on_heal(self._call_restored)

    def next_number(self) -> int:
        self._last_number += 1
        return self._last_number

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
                if self.rng.random() >= loss:
                    break
                delay_us += first_retry_us
                first_retry_us *= 2
        return delay_us

    def call_when_restored(self, source: str, target: str, action: Callable[[], object]) -> None:
        """Call a function once a cut link is restored."""
        self._waiting.append(((source, target), action))

    def _call_restored(self) -> None:
        waiting, self._waiting = self._waiting, []
        for link, action in waiting:
            if self.network.is_cut(*link):
                self._waiting.append((link, action))
            else:
                action()

    # -- connecting ----------------------------------------------------------------------------

    def connect(
        self,
        machine: Machine,
        target: Machine,
        port: int,
        done: Callable[[ConnectionEnd | OSError], bool],
    ) -> None:
        """Connect. ``done`` gets the client's end or an error, and returns whether it takes it."""
        attempt = _ConnectionAttempt(self, machine, target, port, done)
        attempt.begin()

    def create_ends(
        self, client: Machine, client_port: int, server: Machine, port: int
    ) -> ConnectionEnd:
        """Create both ends of a connection; return the client's end."""
        client_end = ConnectionEnd(
            self, client, (client.address, client_port), (server.address, port)
        )
        server_end = ConnectionEnd(
            self, server, (server.address, port), (client.address, client_port)
        )
        client_end.peer, server_end.peer = server_end, client_end
        client_end.peer_machine, server_end.peer_machine = server, client
        client.ends[client_end] = server.ends[server_end] = None
        return client_end


class _ConnectionAttempt:
    """A connection attempt."""

    def __init__(
        self,
        tcp: TcpNetwork,
        machine: Machine,
        target: Machine,
        port: int,
        done: Callable[[ConnectionEnd | OSError], bool],
    ) -> None:
        self._tcp = tcp
        self._machine = machine
        self._target = target
        self._port = port
        self._done = done
        self._is_done = False
        self._timer = tcp.runtime.call_later(None, _CONNECT_TIMEOUT_US, self._give_up)

    def begin(self) -> None:
        self._send_empty_segment(self._machine, self._target, self._on_request)

    def _send_empty_segment(
        self, source: Machine, target: Machine, on_arrival: Callable[[], object]
    ) -> None:
        """Send an empty segment from one machine to the other."""
        if self._is_done:
            return
        tcp = self._tcp
        delay_us = tcp.delay_us(source.name, target.name, 0, _CONNECT_RETRY_US)
        if delay_us is None:
            again = partial(self._send_empty_segment, source, target, on_arrival)
            tcp.call_when_restored(source.name, target.name, again)
        else:
            tcp.runtime.call_later(None, delay_us, on_arrival)

    def _on_request(self) -> None:
        """Handle the arrival of the connection request at the target's kernel."""
        target, machine = self._target, self._machine
        if self._is_done:
            return
        if not target.is_up:
            # Without power there is no answer; the attempt may time out before the power returns.
            target.call_when_up(self.begin)
            return
        accept = target.acceptors.get(self._port)
        if accept is None:
            refused = _os_error(ConnectionRefusedError, errno.ECONNREFUSED)
            self._send_empty_segment(target, machine, lambda: self._end(refused))
            return
        client_end = self._tcp.create_ends(machine, machine.free_port(), target, self._port)
        assert client_end.peer is not None
        accept(client_end.peer)
        self._send_empty_segment(target, machine, lambda: self._end(client_end))

    def _give_up(self) -> None:
        self._end(_os_error(TimeoutError, errno.ETIMEDOUT))

    def _end(self, outcome: ConnectionEnd | OSError) -> None:
        if self._is_done:
            return
        self._is_done = True
        self._timer.cancel()
        if not self._done(outcome) and isinstance(outcome, ConnectionEnd):
            outcome.reset()


class ConnectionEnd:
    """An end of a connection."""

    def __init__(
        self, tcp: TcpNetwork, machine: Machine, name: Address, peer_name: Address
    ) -> None:
        self._tcp = tcp
        self._number = tcp.next_number()
        self.machine = machine
        self.name = name
        self.peer_name = peer_name
        self.peer: ConnectionEnd | None = None
        self.peer_machine: Machine = machine
        self.transport: EndTransport | None = None
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
        self._window_timer: object = None
        # Incoming bytes.
        self._received: deque[bytes] = deque()
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
        self._send_unsent()

    def end(self) -> None:
        """End this direction once all earlier bytes are sent."""
        if not self._is_ended:
            self._is_ended = True
            if not self._unsent and not self._is_gone:
                self._send_segment(None, None)

    def _send_unsent(self) -> None:
        room = WINDOW_BYTES - self._unread_bytes
        if self._acknowledged:
            now_us = self._tcp.runtime.now
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
            self._send_segment(data, None)
        if unsent:
            self._wait_for_room()
        elif self._is_ended:
            self._send_segment(None, None)
            if self._is_closed:
                self._remove()

    def _wait_for_room(self) -> None:
        if self._window_timer is None and self._acknowledged:
            wait_us = self._acknowledged[0][0] - self._tcp.runtime.now
            self._window_timer = self._tcp.runtime.call_later(None, wait_us, self._on_window_space)

    def _on_window_space(self) -> None:
        self._window_timer = None
        if self._is_gone:
            return
        self._send_unsent()
        if self.transport is not None:
            self.transport.on_writable()

    def _send_segment(self, data: bytes | None, error: OSError | None) -> None:
        """Send a segment: bytes, the end of the direction (no bytes), or a reset (an error)."""
        if self._stalled:
            self._stalled.append((data, error))
            return
        tcp = self._tcp
        source, target = self.machine.name, self.peer_machine.name
        delay_us = tcp.delay_us(source, target, len(data or b""), _FIRST_RETRY_US)
        if delay_us is None:
            self._stalled.append((data, error))
            self._stalled_since_us = tcp.runtime.now
            tcp.call_when_restored(source, target, self._send_stalled)
            tcp.runtime.call_later(
                None, _RETRANSMISSION_TIMEOUT_US, partial(self._give_up, self._stalled_since_us)
            )
            return
        runtime, rng = tcp.runtime, tcp.rng
        now_us = runtime.now
        arrives_us = max(now_us + delay_us, self._arrives_us)
        while data is not None and len(data) > 1 and (drawn := rng.random()) < _SPLIT_PROBABILITY:
            place = 1 + int(drawn / _SPLIT_PROBABILITY * (len(data) - 1))
            arrive = partial(self._arrive, data[:place], error)
            runtime.call_later(None, arrives_us - now_us, arrive)
            data = data[place:]
            arrives_us += int(rng.random() * _SPLIT_DELAY_MAX_US)
        runtime.call_later(None, arrives_us - now_us, partial(self._arrive, data, error))
        self._arrives_us = arrives_us

    def _send_stalled(self) -> None:
        stalled, self._stalled = self._stalled, deque()
        self._stalled_since_us = -1
        for data, error in stalled:
            self._send_segment(data, error)

    def _give_up(self, since_us: int) -> None:
        """Give the connection up if no bytes have arrived for a quarter of an hour."""
        if self._stalled and self._stalled_since_us == since_us:
            self._stalled.clear()
            self.fail(_os_error(TimeoutError, errno.ETIMEDOUT))

    # -- arriving ------------------------------------------------------------------------------

    def _arrive(self, data: bytes | None, error: OSError | None) -> None:
        peer = self.peer
        assert peer is not None
        if peer._is_gone or peer._is_closed:
            if data is not None and not self._is_gone:
                self._answer_closed(peer)
            return
        if error is not None:
            peer.fail(error)
            return
        if data is None:
            peer.has_peer_ended = True
        else:
            peer._received.append(data)
        if peer.transport is not None:
            peer.transport.on_readable()

    def _answer_closed(self, peer: ConnectionEnd) -> None:
        """Answer with a reset, as a kernel that does not know the connection; not without power."""
        if peer.machine.is_up:
            peer._answer_reset()
            return
        peer.machine.call_when_up(peer._answer_reset)
        give_up = partial(self.fail, _os_error(TimeoutError, errno.ETIMEDOUT))
        self._tcp.runtime.call_later(None, _RETRANSMISSION_TIMEOUT_US, give_up)

    def read(self, size: int) -> bytes:
        """Return up to ``size`` received bytes; empty if there are none."""
        received = self._received
        if not received:
            return b""
        data = received.popleft()
        if len(data) > size:
            received.appendleft(data[size:])
            data = data[:size]
        if self.peer is not None:
            self.peer._note_read(len(data))
        return data

    @property
    def has_data(self) -> bool:
        """True if there are bytes to read."""
        return bool(self._received)

    def _note_read(self, count: int) -> None:
        """Note that the peer has read bytes, which this end learns after a delay."""
        tcp = self._tcp
        source, target = self.peer_machine.name, self.machine.name
        if source != target and tcp.network.is_cut(source, target):
            tcp.call_when_restored(source, target, partial(self._note_read, count))
            return
        trip_us = 0 if source == target else tcp.network.typical_us(source, target)
        self._acknowledged.append((tcp.runtime.now + trip_us, count))
        if self._unsent:
            self._wait_for_room()

    # -- ending --------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the end for its process: sent bytes are delivered, incoming bytes are refused."""
        if self._is_gone:
            return
        if self._received:  # the peer must learn that they were not read
            self.reset()
            return
        self._is_closed = True
        self.end()
        if not self._unsent:
            self._remove()

    def reset(self) -> None:
        """End the connection at once and reset the peer's end."""
        if self._is_gone:
            return
        self._clear_buffers()
        self._send_segment(None, _os_error(ConnectionResetError, errno.ECONNRESET))
        self._remove()

    def vanish(self) -> None:
        """End the connection without notifying the peer."""
        self.has_vanished = True
        self._clear_buffers()
        self._stalled.clear()
        self._remove()

    def _answer_reset(self) -> None:
        self._send_segment(None, _os_error(ConnectionResetError, errno.ECONNRESET))

    def fail(self, error: OSError) -> None:
        """End the connection with an error, and notify its process."""
        if self._is_gone:
            return
        self._clear_buffers()
        self._remove()
        if self.transport is not None:
            self.transport.on_lost(error)

    def _clear_buffers(self) -> None:
        self._unsent.clear()
        self._received.clear()
        self.unsent_bytes = 0
        self._is_ended = True

    def _remove(self) -> None:
        self._is_gone = True
        self.machine.ends.pop(self, None)
