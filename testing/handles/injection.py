"""Injections: answer, delay or fail the next requests of one API."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from ...protocol.awaiting import Disconnected
from ...protocol.data import MetadataRequest, RequestContext
from ...protocol.errors import ErrorCode, UsageError
from ...protocol.values import TopicPartition, changed, frozen
from .partial_answers import concerns, partitions_of, plan_answer

if TYPE_CHECKING:
    from ...actors.delivery import Delivery
    from ...actors.runtime.runtime import Runtime
    from .partial_answers import Plan

Answer = Callable[[Any], object]
"""Called with a request; returns its response, an error of Kafka's, or None to let it pass."""


@frozen
class RequestFilter:
    """Matches the requests an injection is about; a field that is None matches every request."""

    wanted: type
    machine: str | None = None
    topic: str | None = None
    partition: int | None = None
    client_id: str | None = None
    """Client id, in which wildcards of ``fnmatch`` are allowed."""
    nth: int = 1
    """Number of the first matching request to be affected, counted from 1."""

    def matches(self, delivery: Delivery) -> bool:
        if type(delivery.message) is not self.wanted:
            return False
        if self.machine is not None and delivery.target.machine != self.machine:
            return False
        if self.client_id is not None and not fnmatchcase(client_id_of(delivery), self.client_id):
            return False
        return self.topic is None or concerns(
            delivery.message, delivery.target, self.topic, self.partition
        )

    def __str__(self) -> str:
        names = ("machine", "topic", "partition", "client_id")
        parts = [
            f"{name}={value!r}" for name in names if (value := getattr(self, name)) is not None
        ]
        parts += [f"nth={self.nth}"] if self.nth > 1 else []
        return ", ".join([self.wanted.__name__.removesuffix("Request"), *parts])


@dataclass(frozen=True, slots=True)
class InjectionEffect:
    """The effect of an injection on requests."""

    error: ErrorCode | None = None
    errors: Mapping[TopicPartition, ErrorCode] = field(default_factory=dict)
    """Errors of single partitions."""
    answer: Answer | None = None
    delay_us: int = 0
    disconnect: bool = False

    def applies_to(self, request: Any, broker: Any) -> bool:
        """Return whether the effect applies to a request: it has no errors by partition, or one of
        their partitions is in the request."""
        return not self.errors or any(
            concerns(request, broker, key.topic, key.partition) for key in self.errors
        )

    @property
    def only_delays(self) -> bool:
        return self.error is None and not (self.errors or self.answer or self.disconnect)


def client_id_of(delivery: Delivery) -> str:
    """Return the client id of a request's sender, or the name of a sender without connection."""
    context = delivery.context
    return context.client_id if type(context) is RequestContext else str(delivery.sender.name)


class Injection:
    """Affects the next requests of an API: a number of them, or all until ``cancel``."""

    def __init__(
        self,
        number: int,
        runtime: Runtime,
        request_filter: RequestFilter,
        effect: InjectionEffect,
        times: int | None,
        require_own_process: Callable[[], None],
    ) -> None:
        self.id: int = number
        """Number of the injection; a cluster numbers its injections from 1."""
        self.applied: int = 0
        """Number of requests that it has affected."""
        self.remaining: int | None = times
        """Number of requests that it will still affect; None without a limit."""
        self._require_own_process = require_own_process
        self._runtime = runtime
        self._filter = request_filter
        self._effect = effect
        self._matched = 0  # requests that the filter matched
        self._count_lock = threading.Lock()  # in the threaded runtime each broker has a thread
        self._delayed = 0
        self._unaffected: dict[int, None] = {}
        # (sender, correlation) of a request: how to change the broker's answer to it.
        self._plans: dict[tuple[str, int], Plan] = {}
        runtime.network.intercept(self)

    def __repr__(self) -> str:
        left = "no limit" if self.remaining is None else f"{self.remaining} remaining"
        return f"<injection {self.id} into {self._filter}: {self.applied} applied, {left}>"

    @property
    def api(self) -> str:
        """The affected API, by Kafka's name."""
        return self._filter.wanted.__name__.removesuffix("Request")

    @property
    def is_active(self) -> bool:
        """True while the injection may affect another request."""
        return self.remaining != 0 and self in self._runtime.network.interceptors

    def cancel(self) -> None:
        """Stop injecting; idempotent. Messages already delayed still arrive after their delay."""
        self._require_own_process()
        self.remaining = 0
        if not self._plans:
            self._runtime.network.stop_intercepting(self)

    def __call__(self, delivery: Delivery) -> bool:
        if delivery.is_reply:
            return self._complete(delivery)
        if delivery.message_id in self._unaffected:
            del self._unaffected[delivery.message_id]
            return False
        if not self._filter.matches(delivery):
            return False
        if (
            not self._effect.applies_to(delivery.message, delivery.target)
            or not self._count_request()
        ):
            return False
        runtime = self._runtime
        text = f"injected into {type(delivery.message).__name__}"
        runtime.note("fault", delivery.target.name, text)
        if self._effect.delay_us:
            self._delayed += 1
            delayed = delivery.following(runtime.cause)  # its effects are traced to the injection
            runtime.call_later_by_runtime_clock(
                delivery.target, self._effect.delay_us, lambda: self._apply_delayed(delayed)
            )
            return True
        is_handled = self._apply(delivery)
        self._end_if_done()
        return is_handled

    def _count_request(self) -> bool:
        """Count a request that the filter matches; return False if it is to be left alone."""
        with self._count_lock:
            if self.remaining == 0:
                return False
            self._matched += 1
            if self._matched < self._filter.nth:
                return False
            if self.remaining is not None:
                self.remaining -= 1
            self.applied += 1
            return True

    def _apply_delayed(self, delivery: Delivery) -> None:
        self._delayed -= 1
        if not self._apply(delivery):
            self._unaffected[delivery.message_id] = None
            self._runtime.network.arrive(delivery)
        self._end_if_done()

    def _apply(self, delivery: Delivery) -> bool:
        """Apply the effect; return False if the request is to be handled as usual."""
        effect, network = self._effect, self._runtime.network
        if effect.disconnect:
            network.reply(delivery.target, delivery, Disconnected("injected disconnect"))
            return True
        error = effect.error
        if effect.answer is not None:
            answer = self._user_answer(effect.answer, delivery.message)
            if answer is None:
                self._uncount_request()
                return False
            if not isinstance(answer, ErrorCode):
                network.reply(delivery.target, delivery, answer)
                return True
            error = answer
        if error is None and not effect.errors:
            return False
        request_error = ErrorCode.UNKNOWN_SERVER_ERROR if error is None else error
        plan = plan_answer(delivery.message, self._errors(delivery, error), request_error)
        if plan.request is None:
            network.reply(delivery.target, delivery, plan.answer(None))
            return True
        if delivery.correlation:
            self._plans[delivery.sender.name, delivery.correlation] = plan
        delivery.target.receive(changed(delivery, message=plan.request))
        return True

    def _errors(
        self, delivery: Delivery, error: ErrorCode | None
    ) -> dict[TopicPartition, ErrorCode]:
        """Return the error of each failing partition; empty if the request fails as a whole."""
        request, request_filter = delivery.message, self._filter
        about = partitions_of(request, delivery.target) or []
        if self._effect.errors:
            named = self._effect.errors
            is_metadata = type(request) is MetadataRequest
            return {key: named[key] for key in (named if is_metadata else about) if key in named}
        assert error is not None
        if request_filter.topic is not None and type(request) is MetadataRequest:
            number = -1 if request_filter.partition is None else request_filter.partition
            return {TopicPartition(request_filter.topic, number): error}
        is_incremental = getattr(request, "session_epoch", -1) > 0
        if request_filter.topic is None and not is_incremental:
            return {}
        return {
            key: error
            for key in about
            if request_filter.topic in (None, key.topic)
            and request_filter.partition in (None, key.partition)
        }

    def _user_answer(self, answer: Answer, request: Any) -> Any:
        """Return the answer of the user's function; if it raises or its answer does not fit, end
        the injection and report the error as an observer's."""
        try:
            found = answer(request)
            if found is None or isinstance(found, ErrorCode):
                return found
            if isinstance(found, str) and found in ErrorCode.__members__:
                return ErrorCode[found]
            wanted = type(request).__name__.removesuffix("Request") + "Response"
            if type(found).__name__ != wanted:
                raise UsageError(
                    f"answer must give a {wanted} (of {type(request).__module__}), the name of an "
                    f"error of Kafka's, or None to let the request pass; not {found!r}"
                )
            return found
        except Exception as error:
            self.cancel()
            self._runtime.report_user_failure("answer of inject", answer, error)
            return None

    def _uncount_request(self) -> None:
        """Do not count a request after all, as the user's function let it pass."""
        with self._count_lock:
            self.applied -= 1
            if self.remaining is not None and self in self._runtime.network.interceptors:
                self.remaining += 1

    def _complete(self, delivery: Delivery) -> bool:
        """Put the error into the broker's answer and return True, if a plan waits for it."""
        plan = self._plans.pop((delivery.target.name, delivery.correlation), None)
        if plan is None:
            return False
        answer = delivery.message
        if not isinstance(answer, BaseException):
            answer = plan.answer(answer)
        delivery.target.receive(changed(delivery, message=answer))
        self._end_if_done()
        return True

    def _end_if_done(self) -> None:
        if self.remaining == 0 and not self._delayed and not self._plans:
            self._runtime.network.stop_intercepting(self)
