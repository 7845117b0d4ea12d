"""A ZooKeeper client that finds a server, keeps its session alive and survives losing either.

Theory of operation. States: ``NOT_STARTED``; ``CONNECTING`` (looking for a server that takes the
session); ``CONNECTED``; ``EXPIRED`` (as a server reported; callbacks run before a new session is
opened; requests are answered SESSIONEXPIRED meanwhile); ``AUTH_FAILED``; ``CLOSED``. A lost
connection does not mean an expired session: only a server decides that, after the client has
reconnected. Each connection counts its packets per direction. A connection ends with a gap in the
numbers, a silence of two thirds of the session timeout, or a message from the other side. Every
request in flight is then answered CONNECTIONLOSS: whether it took effect is unknown.
``handle_requests`` waits for a connection and repeats the lost requests, as Kafka's
``KafkaZkClient.retryRequestsUntilConnected`` does; ``send_once`` does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

from ...protocol.awaiting import Pending, Task
from ...protocol.errors import UsageError, invariant
from ...protocol.host import Host
from ..messages import (
    AuthFailed,
    ClientPacket,
    CloseSession,
    ConnectionClosed,
    ConnectRequest,
    ConnectResponse,
    Ping,
    Request,
    ServerPacket,
    SessionRequest,
    WatchEvent,
    ZkCode,
    ZkResponse,
    ZooKeeperError,
)
from ..timers import OneTimer
from .handlers import HandlerRegistry
from .in_flight import Batch, InFlight, failed_response
from .watches import ClientWatches

RETRY_MS_MAX = 1000
PING_INTERVAL_MS_MAX = 10_000
AUTH_RETRY_MS = 1000
_CONNECTION_BITS = 22
"""Number of low bits of a connection id that count a client's connections; the high bits identify
the client."""


class ClientState(Enum):
    """States of a client."""

    NOT_STARTED = "not started"
    CONNECTING = "connecting"
    CONNECTED = "connected"
    EXPIRED = "expired"
    AUTH_FAILED = "authentication failed"
    CLOSED = "closed"


_FINAL_CODES = {
    ClientState.EXPIRED: ZkCode.SESSIONEXPIRED,
    ClientState.AUTH_FAILED: ZkCode.AUTHFAILED,
    ClientState.CLOSED: ZkCode.SESSIONEXPIRED,
}
"""Codes with which requests are answered at once, by the client's state."""


class ZooKeeperClient(HandlerRegistry):
    """A session (and its successors) with an ensemble of ``servers`` (node names).

    ``max_in_flight`` limits the requests sent but not yet answered, over all callers.
    """

    def __init__(
        self, host: Host, servers: Sequence[str], session_timeout_ms: int, max_in_flight: int = 10
    ) -> None:
        if not servers:
            raise UsageError("a ZooKeeper client needs at least one server")
        super().__init__()
        self.host = host
        self.state: ClientState = ClientState.NOT_STARTED
        self.session_id: int = 0
        """Id of the session; 0 while there is none."""
        self._servers = list(servers)
        self._server_index = -1
        self._requested_timeout_ms = session_timeout_ms
        self._timeout_ms = session_timeout_ms  # as negotiated
        self._backoff_ms_max = max(1, min(RETRY_MS_MAX, session_timeout_ms // 6))
        self._connect_deadline_ms = 0
        self._requests = InFlight(max_in_flight)
        self._watches = ClientWatches()
        self._last_zxid = 0
        self._connection_id = 0
        self.server: str = ""
        """Name of the server that the client is connected to, or tried last."""
        self._sent = 0
        self._received = 0
        self._last_heard_ms = 0
        self._last_sent_ms = 0
        self._timer = OneTimer(host)
        self._waiters: list[Pending[bool]] = []
        self._closing: Pending[None] | None = None

    # --- life

    @property
    def is_connected(self) -> bool:
        return self.state is ClientState.CONNECTED

    def start(self) -> None:
        """Look for a server and open a session."""
        invariant(self.state is ClientState.NOT_STARTED, "a client is started once")
        self._connection_id = self.host.rng.getrandbits(40) << _CONNECTION_BITS
        self.host.rng.shuffle(self._servers)
        self.state = ClientState.CONNECTING
        self._connect()

    def close(self) -> Pending[None]:
        """End the session; its ephemeral nodes are deleted at once.

        Requests already sent are still answered, others get SESSIONEXPIRED. The result is done when
        the server has confirmed. Without a connection the session is left to expire.
        """
        if self._closing is not None:
            return self._closing
        self._closing = Pending()
        if self.state is ClientState.CONNECTED:
            waiting = list(self._requests.waiting)
            self._requests.waiting.clear()
            for batch in waiting:
                for index in range(batch.next_index, len(batch.requests)):
                    batch.answer(
                        index, failed_response(batch.requests[index], ZkCode.SESSIONEXPIRED)
                    )
            self._transmit(self._requests.add(None, 0, CloseSession()), CloseSession())
        else:
            self._end(ClientState.CLOSED)
        return self._closing

    def abandon(self) -> None:
        """Stop as a crashed process does: send nothing and answer nothing; the session expires."""
        self.state = ClientState.CLOSED
        self._timer.cancel()
        self._requests.sent.clear()
        self._requests.waiting.clear()
        self._waiters.clear()

    async def wait_until_connected(self) -> None:
        """Wait until a server serves the session (or its successor).

        Raises ``ZooKeeperError`` (SESSIONEXPIRED) when the client is closed.
        """
        while self.state is not ClientState.CONNECTED:
            if self.state is ClientState.CLOSED:
                raise ZooKeeperError(ZkCode.SESSIONEXPIRED)
            await self._next_state()

    def _next_state(self) -> Pending[bool]:
        """Return a result that is True at the next connection, False if session or client ends."""
        pending: Pending[bool] = Pending()
        self._waiters.append(pending)
        return pending

    def _complete_waiters(self, connected: bool) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter.set_result(connected)

    # --- requests

    async def handle_request(self, request: Request) -> ZkResponse:
        """Send one request and return its answer, as ``handle_requests`` does."""
        return (await self.handle_requests((request,)))[0]

    async def handle_requests(self, requests: Sequence[Request]) -> list[ZkResponse]:
        """Send requests and return their answers in order.

        After a connection loss the requests without an answer are repeated once the client is
        connected again. If the session ends first, they are answered SESSIONEXPIRED (AUTHFAILED
        when authentication failed).
        """
        answers: list[ZkResponse] = []
        remaining = requests
        while remaining:
            while self.state in (ClientState.CONNECTING, ClientState.NOT_STARTED):
                if not await self._next_state():
                    code = _FINAL_CODES.get(self.state, ZkCode.SESSIONEXPIRED)
                    answers.extend(failed_response(request, code) for request in remaining)
                    return answers
            batch = await self.send_once(remaining)
            answers.extend(r for r in batch if r.code is not ZkCode.CONNECTIONLOSS)
            remaining = requests[len(answers) :]
        return answers

    async def send_once(self, requests: Sequence[Request]) -> list[ZkResponse]:
        """Send requests without repeating any, and return their answers in order.

        When the connection is lost, the requests in flight and all later ones are answered
        CONNECTIONLOSS (CP-199). Without a connection the requests wait for the outcome of the next
        attempt to connect.
        """
        if not requests:
            return []
        code = _FINAL_CODES.get(self.state)
        if code is None and self._closing is not None:
            code = ZkCode.SESSIONEXPIRED
        if code is not None:
            return [failed_response(request, code) for request in requests]
        batch = Batch([self.with_watch(request) for request in requests])
        self._requests.waiting.append(batch)
        if self.state is ClientState.CONNECTED:
            self._send_waiting()
        return await batch.done

    def _send_waiting(self) -> None:
        """Send waiting requests, as many as ``max_in_flight`` allows."""
        while self.state is ClientState.CONNECTED:
            next_request = self._requests.take_next()
            if next_request is None:
                return
            self._transmit(*next_request)

    def _transmit(self, xid: int, request: SessionRequest) -> None:
        number = self._sent
        self._sent = number + 1
        self._last_sent_ms = self.host.now_ms()
        self.host.send(
            self.server, ClientPacket(self._connection_id, number, self.session_id, xid, request)
        )

    # --- connecting

    def _connect(self) -> None:
        """Try to connect to the next server."""
        self._server_index = (self._server_index + 1) % len(self._servers)
        self.server = self._servers[self._server_index]
        self._connection_id += 1
        self._sent = 0
        self._received = 0
        self._connect_deadline_ms = self.host.now_ms() + self._timeout_ms // len(self._servers)
        self._ask_to_connect()

    def _ask_to_connect(self) -> None:
        """Send the connect request, and repeat it until the attempt times out, like TCP's SYN."""
        remaining_ms = self._connect_deadline_ms - self.host.now_ms()
        if remaining_ms <= 0:
            self._lose_connection()
            return
        self.host.send(
            self.server,
            ConnectRequest(
                self._connection_id, self.session_id, self._requested_timeout_ms, self._last_zxid
            ),
        )
        self._timer.set(min(remaining_ms, self._backoff_ms_max), self._ask_to_connect)

    def _reconnect_later(self) -> None:
        """Reconnect after a random delay, so that clients do not all return at once."""
        self._timer.set(self.host.rng.uniform(0, self._backoff_ms_max), self._connect)

    def _lose_connection(self) -> None:
        """Give up the connection, or the attempt to connect, with all requests in flight."""
        self.host.send(self.server, ConnectionClosed(self._connection_id))
        self._on_connection_ended()

    def _on_connection_ended(self) -> None:
        if self._closing is not None:
            self._end(ClientState.CLOSED)
            return
        self.state = ClientState.CONNECTING
        self._connection_id += 1  # packets that still arrive on the old connection are ignored
        self._reconnect_later()
        self._requests.fail_all(ZkCode.CONNECTIONLOSS)

    def _on_connected(self, response: ConnectResponse) -> None:
        if response.session_id == 0:
            self._on_session_ended(ClientState.EXPIRED)
            return
        self.session_id = response.session_id
        self._timeout_ms = response.session_timeout_ms
        self.state = ClientState.CONNECTED
        self._last_heard_ms = self._last_sent_ms = self.host.now_ms()
        self._timer.set(self._ping_interval_ms(), self._heartbeat)
        rearm = self._watches.rearm_request(self._last_zxid)
        if rearm is not None:
            self._transmit(self._requests.add(None, 0, rearm), rearm)
        self._complete_waiters(True)
        self._send_waiting()

    # --- heartbeats

    def _ping_interval_ms(self) -> float:
        return min(PING_INTERVAL_MS_MAX, self._timeout_ms / 3)

    def _heartbeat(self) -> None:
        """Ping if nothing was sent for a third of the timeout; give up the connection if nothing
        was received for two thirds of it."""
        now_ms = self.host.now_ms()
        silent_ms = now_ms - self._last_heard_ms
        interval_ms = self._ping_interval_ms()
        read_timeout_ms = self._timeout_ms * 2 / 3
        if silent_ms >= int(read_timeout_ms):
            causes = self.host.causes
            if causes is not None:
                causes.record_timeout((self.server,), causes.current(), silent_ms)
            self._lose_connection()
            return
        idle_ms = now_ms - self._last_sent_ms
        if idle_ms >= int(interval_ms):
            number = self._sent
            self._sent = number + 1
            self._last_sent_ms = now_ms
            self.host.send(self.server, Ping(self._connection_id, number, self.session_id))
            idle_ms = 0
        self._timer.set(
            max(1, min(interval_ms - idle_ms, read_timeout_ms - silent_ms)), self._heartbeat
        )

    # --- messages in

    def on_message(self, source: str, message: Any) -> bool:
        """Handle a message from a server; return False for any other message.

        A node hosts one client, so packets of former connections are handled by ignoring them.
        """
        kind = type(message)
        if kind is ServerPacket or kind is WatchEvent or kind is Ping:
            if message.connection_id == self._connection_id:
                self._on_packet(message)
            elif message.connection_id >> _CONNECTION_BITS != (
                self._connection_id >> _CONNECTION_BITS
            ):
                # Sent to a client that ran on this node before.
                self.host.send(source, ConnectionClosed(message.connection_id))
            return True
        if kind is ConnectResponse or kind is ConnectionClosed or kind is AuthFailed:
            if message.connection_id == self._connection_id:
                self._on_connection_message(message)
            return True
        return False

    def _on_packet(self, packet: ServerPacket | WatchEvent | Ping) -> None:
        if self.state is not ClientState.CONNECTED:
            return
        if packet.number != self._received:
            self._lose_connection()
            return
        self._received += 1
        self._last_heard_ms = self.host.now_ms()
        if isinstance(packet, ServerPacket):
            self._on_response(packet.xid, packet.response)
        elif isinstance(packet, WatchEvent):
            self._watches.on_event(packet.type, packet.path)
            self.dispatch(packet.type, packet.path)

    def _on_connection_message(
        self, message: ConnectResponse | ConnectionClosed | AuthFailed
    ) -> None:
        if self.state not in (ClientState.CONNECTING, ClientState.CONNECTED):
            return
        if isinstance(message, ConnectResponse):
            if self.state is ClientState.CONNECTING:
                self._on_connected(message)
        elif isinstance(message, AuthFailed):
            self._on_session_ended(ClientState.AUTH_FAILED)
        else:
            self._on_connection_ended()

    def on_disconnect(self, name: str) -> None:
        """Handle the loss of a node; if it is this client's server, the connection ends."""
        if name == self.server and self.state is ClientState.CONNECTED:
            self._on_connection_ended()

    def _on_response(self, xid: int, response: ZkResponse) -> None:
        sent = self._requests.sent
        invariant(sent and sent[0][0] == xid, "answers come in the order of the requests")
        _, batch, index, request = sent.popleft()
        self._last_zxid = max(self._last_zxid, response.zxid)
        self._watches.on_response(request, response)
        if batch is not None:
            self._send_waiting()
            batch.answer(index, response)
        elif isinstance(request, CloseSession):
            self._end(ClientState.CLOSED)
        else:
            self._send_waiting()

    # --- the end of a session

    def _end(self, state: ClientState) -> None:
        self.state = state
        self.session_id = 0
        self._timer.cancel()
        self._connection_id += 1
        self._watches.clear()
        self._requests.fail_all(_FINAL_CODES[state])
        if self._closing is not None:
            self._closing.set_result(None)
        self._complete_waiters(False)

    def _on_session_ended(self, state: ClientState) -> None:
        """End a session that has expired or was refused, and start a new one."""
        if self._closing is not None:
            self._end(ClientState.CLOSED)
            return
        self._end(state)
        if state is ClientState.AUTH_FAILED:
            self._timer.set(AUTH_RETRY_MS, self._reinitialize)
            Task(self.run_state_callbacks("on_auth_failure"))
        else:
            self._reinitialize()

    def _reinitialize(self) -> None:
        Task(self._run_reinitialization())

    async def _run_reinitialization(self) -> None:
        await self.run_state_callbacks("before_initializing_session")
        if self.state is ClientState.CLOSED:
            return
        self._last_zxid = 0
        self._timeout_ms = self._requested_timeout_ms
        self.state = ClientState.CONNECTING
        self._connect()
        await self.run_state_callbacks("after_initializing_session")
