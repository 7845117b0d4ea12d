"""Quotas, which are stored in ``/config/users`` and ``/config/clients``, and their usage.

Kafka: ``ClientQuotaManager``, ``ControllerMutationQuotaManager`` (KIP-599), ``Rate`` and
``TokenBucket``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

from ...protocol.config import BrokerConfig
from ...protocol.security.quotas import (
    CLIENT_ID,
    CLIENT_QUOTAS,
    CONNECTION_CREATION_RATE,
    CONTROLLER_MUTATION_RATE,
    IP,
    REQUEST_PERCENTAGE,
    USER,
)
from ...protocol.znode_paths import CLIENTS
from .entities import desanitize

_Key = tuple[str | bool | None, str | bool | None]
"""(user, client id): a name, None for the default, or False if the quota does not depend on it."""


class ClientRate:
    """A rate over the latest windows, as Kafka's ``Rate`` measures it."""

    __slots__ = ("_samples", "_window_count", "_window_ms")

    def __init__(self, window_count: int, window_ms: int) -> None:
        self._window_count = window_count
        self._window_ms = window_ms
        self._samples: deque[list[float]] = deque()
        """[start in milliseconds, sum] of each window, the oldest first."""

    def record(self, value: float, now_ms: int) -> None:
        samples = self._samples
        if not samples or now_ms - samples[-1][0] >= self._window_ms:
            samples.append([now_ms, 0.0])
        samples[-1][1] += value

    def measure(self, now_ms: int) -> tuple[float, float]:
        """Return (units per second, milliseconds over which they are counted)."""
        samples, window_ms = self._samples, self._window_ms
        while samples and now_ms - samples[0][0] >= self._window_count * window_ms:
            samples.popleft()
        elapsed_ms = now_ms - samples[0][0] if samples else 0.0
        missing = self._window_count - 1 - int(elapsed_ms // window_ms)
        if missing > 0:
            elapsed_ms += missing * window_ms
        elapsed_ms = max(elapsed_ms, window_ms)
        return sum(total for _, total in samples) / elapsed_ms * 1000, elapsed_ms

    def throttle_ms(self, bound: float, now_ms: int) -> int:
        """Return the milliseconds to wait until the rate is within its bound again."""
        rate, window_ms = self.measure(now_ms)
        return round((rate - bound) / bound * window_ms) if rate > bound else 0


class TokenBucket:
    """A bucket that refills at the rate of a quota, up to the tokens of ``burst_s`` seconds."""

    __slots__ = ("_burst_s", "_last_ms", "_tokens")

    def __init__(self, burst_s: float) -> None:
        self._burst_s = burst_s
        self._tokens: float | None = None
        self._last_ms = 0

    def _refill(self, quota: float, now_ms: int) -> float:
        burst = self._burst_s * quota
        tokens = burst if self._tokens is None else self._tokens
        tokens = min(burst, tokens + quota * (now_ms - self._last_ms) / 1000)
        self._tokens, self._last_ms = tokens, now_ms
        return tokens

    def is_empty(self, quota: float, now_ms: int) -> bool:
        """Return whether more tokens were taken than there were."""
        return self._refill(quota, now_ms) < 0

    def take(self, count: float, quota: float, now_ms: int) -> int:
        """Take tokens, even more than there are; returns the milliseconds until the deficit is
        refilled."""
        tokens = self._tokens = self._refill(quota, now_ms) - count
        return round(-tokens / quota * 1000) if tokens < 0 else 0


class ClientQuotas:
    """The quotas that one broker knows, and its clients' usage."""

    def __init__(self, config: BrokerConfig) -> None:
        self._window = (config["quota.window.num"], config["quota.window.size.seconds"] * 1000)
        self._burst_s = float(
            config["controller.quota.window.num"] * config["controller.quota.window.size.seconds"]
        )
        self._quotas: dict[str, dict[_Key, float]] = {name: {} for name in CLIENT_QUOTAS}
        self._used: dict[tuple[str, _Key, str, str], ClientRate | TokenBucket] = {}
        self._connection_rates: dict[str | None, float] = {}
        """Connections per second that an address may make; None is the default's key."""
        self._connections: dict[str, ClientRate] = {}
        self.on_change: Callable[[bool], object] = lambda _is_any: None
        """Called with ``is_any`` after quotas have changed."""

    def user_changed(self, entity: str, values: Mapping[str, str]) -> None:
        """Apply the new configuration of a user, or of a user's client."""
        user, _, rest = entity.partition(f"/{CLIENTS}/")
        self._set((desanitize(user), desanitize(rest) if rest else False), values)

    def client_changed(self, entity: str, values: Mapping[str, str]) -> None:
        """Apply the new configuration of a client id."""
        self._set((False, desanitize(entity)), values)

    def _set(self, key: _Key, values: Mapping[str, str]) -> None:
        was_any = self.is_any
        for name, quotas in self._quotas.items():
            if name in values:
                quotas[key] = float(values[name])
            else:
                quotas.pop(key, None)
        if was_any or self.is_any:
            self._used.clear()
            self.on_change(self.is_any)

    def forget_usage(self) -> None:
        """Reset the usage of all clients."""
        self._used.clear()
        self._connections.clear()

    def ip_changed(self, entity: str, values: Mapping[str, str]) -> None:
        """Apply the new configuration of an IP address."""
        address = desanitize(entity)
        was_any = bool(self._connection_rates)
        if CONNECTION_CREATION_RATE in values:
            self._connection_rates[address] = float(values[CONNECTION_CREATION_RATE])
        else:
            self._connection_rates.pop(address, None)
        if was_any or self._connection_rates:
            self.on_change(self.is_any)

    @property
    def limits_connections(self) -> bool:
        """True if the rate of connections is limited for any address."""
        return bool(self._connection_rates)

    @property
    def is_any(self) -> bool:
        return any(self._quotas.values())

    def has_quota(self, entity: Mapping[str, str | None], name: str, value: float | None) -> bool:
        """Return whether the entity's quota has the given value, where None means no quota."""
        if IP in entity:
            return self._connection_rates.get(entity[IP]) == value
        key = (entity.get(USER, False), entity.get(CLIENT_ID, False))
        return self._quotas.get(name, {}).get(key) == value

    def quota(self, name: str, user: str, client_id: str) -> tuple[_Key, float] | None:
        """Return (key, quota) of a client by the most specific of eight keys, or None."""
        quotas = self._quotas[name]
        keys: tuple[_Key, ...] = (
            (user, client_id),
            (user, None),
            (user, False),
            (None, client_id),
            (None, None),
            (None, False),
            (False, client_id),
            (False, None),
        )
        return next(((key, quotas[key]) for key in keys if key in quotas), None)

    def bytes_in_window(self, name: str, user: str, client_id: str) -> int | None:
        """Return the bytes that a client may use at once; None without a quota."""
        found = self.quota(name, user, client_id)
        count, window_ms = self._window
        return None if found is None else int(found[1] * (count - 1) * window_ms / 1000)

    def unrecord_bytes(self, name: str, user: str, client_id: str, count: int, now_ms: int) -> None:
        """Subtract bytes that were counted but are not sent to the client."""
        found = self.quota(name, user, client_id)
        if found is not None:
            self._rate(name, found[0], user, client_id).record(-count, now_ms)

    @property
    def limits_request_time(self) -> bool:
        """True if any quota limits the time that requests take."""
        return bool(self._quotas[REQUEST_PERCENTAGE])

    def use_request_time(self, user: str, client_id: str, time_ns: int, now_ms: int) -> None:
        """Count the thread time that a request took, as a percentage of a second (KIP-124)."""
        found = self.quota(REQUEST_PERCENTAGE, user, client_id)
        if found is not None:
            rate = self._rate(REQUEST_PERCENTAGE, found[0], user, client_id)
            rate.record(time_ns / 1e7, now_ms)

    def request_throttle_ms(self, user: str, client_id: str, now_ms: int) -> int:
        """Return the milliseconds for which to throttle the client, at most one window."""
        found = self.quota(REQUEST_PERCENTAGE, user, client_id)
        if found is None:
            return 0
        rate = self._rate(REQUEST_PERCENTAGE, found[0], user, client_id)
        return int(min(rate.throttle_ms(found[1], now_ms), self._window[1]))

    def connect(self, address: str, now_ms: int) -> int:
        """Count a connection; returns the milliseconds after which to close it, or 0 to accept it.

        A connection that is not accepted does not count (KIP-612).
        """
        bound = self._connection_rates.get(address, self._connection_rates.get(None))
        if bound is None:
            return 0
        rate = self._connections.get(address)
        if rate is None:
            rate = self._connections[address] = ClientRate(*self._window)
        rate.record(1, now_ms)
        throttle_ms = int(min(rate.throttle_ms(bound, now_ms), self._window[1]))
        if throttle_ms:
            rate.record(-1, now_ms)
        return throttle_ms

    def use_bytes(self, name: str, user: str, client_id: str, count: int, now_ms: int) -> int:
        """Count bytes; returns the milliseconds for which to throttle the client."""
        found = self.quota(name, user, client_id)
        if found is None:
            return 0
        rate = self._rate(name, found[0], user, client_id)
        rate.record(count, now_ms)
        return rate.throttle_ms(found[1], now_ms)

    def _rate(self, name: str, key: _Key, user: str, client_id: str) -> ClientRate:
        at = (name, key, *_usage_owner(key, user, client_id))
        rate = self._used.get(at)
        if not isinstance(rate, ClientRate):
            rate = self._used[at] = ClientRate(*self._window)
        return rate

    def mutations(self, user: str, client_id: str) -> tuple[TokenBucket, float] | None:
        """Return (bucket, rate) for a client's changes of topics; None without a quota."""
        name = CONTROLLER_MUTATION_RATE
        found = self.quota(name, user, client_id)
        if found is None:
            return None
        at = (name, found[0], *_usage_owner(found[0], user, client_id))
        bucket = self._used.get(at)
        if not isinstance(bucket, TokenBucket):
            bucket = self._used[at] = TokenBucket(self._burst_s)
        return bucket, found[1]


def _usage_owner(key: _Key, user: str, client_id: str) -> tuple[str, str]:
    """Return the (user, client id) whose usage counts together, "" for a part that all share.

    A default quota applies to each user or each client separately.
    """
    return "" if key[0] is False else user, "" if key[1] is False else client_id
