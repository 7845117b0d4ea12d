"""What a network keeps of its links: latency, loss, cuts, order; and who watches messages arrive.

``network.Network`` sends by these rules.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from ..delivery import Delivery, Link
from ..surroundings import Surroundings
from .latency import LatencyModel

Filter = Callable[[Delivery], bool]
Interceptor = Callable[[Delivery], bool]
"""Sees a request before it is handled; True takes it over (the interceptor answers or drops)."""


def _no_delay(_rng: random.Random) -> int:
    return 0


class LinkRules:
    """Rules name machines: ``broker-1`` covers its fetchers too."""

    def __init__(self, runtime: Surroundings) -> None:
        self._runtime = runtime
        self.latency_us = 0  # delay of every link while ``_plain``
        self._plain = True  # constant latency and no rule
        self._ruled = False  # some rule beside the model of all links
        self._model: LatencyModel | None = None
        self._draw_us: Callable[[random.Random], int] = _no_delay
        self._link_models: dict[tuple[str, str], LatencyModel] = {}
        self._cut: dict[tuple[str, str], None] = {}
        self._loss = 0.0
        self._link_loss: dict[tuple[str, str], float] = {}
        self._links: dict[tuple[str, str], Link] = {}  # by (source, target) machine
        # Nothing sent under a new rule may overtake what is under way under the old ones.
        self._free_at_least = 0
        self._hold_filters: list[Filter] = []
        self._interceptors: list[Interceptor] = []
        self._observers: list[Callable[[Delivery], object]] = []

    def _link(self, source: str, target: str) -> Link:
        link = self._links.get((source, target))
        if link is None:
            link = self._links[source, target] = Link(self._free_at_least)
        return link

    # -- rules ---------------------------------------------------------------------------------

    def _update_plain(self) -> None:
        was_plain = self._plain
        has_rules = bool(
            self._cut or self._loss or self._link_loss or self._hold_filters or self._link_models
        )
        varies = self._model is not None and self._model.constant_us is None
        self._plain = not (has_rules or varies or self._still_under_way())
        self._ruled = has_rules or self._model is None
        if was_plain and not self._plain:
            self._links.clear()
        self._rules_changed()

    def _rules_changed(self) -> None:
        """Some rule is another now."""

    def _still_under_way(self) -> bool:
        """Whether links of the rules before hold messages that plain ones would overtake."""
        now = self._runtime.now_us()
        soonest = now + self.latency_us
        return self._free_at_least > soonest or any(
            link.free_at_us > soonest for link in self._links.values()
        )

    def set_latency(
        self, model: LatencyModel, source: str | None = None, target: str | None = None
    ) -> None:
        """Delay of all links, or of one link in one direction."""
        self._free_at_least = max(self._free_at_least, self._runtime.now_us() + self.latency_us)
        if source is None or target is None:
            self._model = model
            self.latency_us = model.constant_us if model.constant_us is not None else 0
            self._draw_us = model.draw_us
        else:
            self._link_models[source, target] = model
        self._update_plain()

    def forget_link_latencies(self) -> None:
        """Give every link the delay of all links again."""
        self._link_models.clear()
        self._update_plain()

    def set_loss(
        self, probability: float, source: str | None = None, target: str | None = None
    ) -> None:
        """Probability that a message is lost, on all links or on one."""
        if source is None or target is None:
            self._loss = probability
        else:
            self._link_loss[source, target] = probability
        self._update_plain()

    def cut(self, source: str, target: str) -> None:
        """Let nothing through from one machine to another: one direction only.

        What is sent meanwhile arrives when the link is mended, as with TCP, unless its asker has
        given up by then and with that closed the connection.
        """
        self._cut[source, target] = None
        self._update_plain()

    def is_cut(self, source: str, target: str) -> bool:
        return (source, target) in self._cut

    # -- watching ------------------------------------------------------------------------------

    def observe(self, observer: Callable[[Delivery], object]) -> None:
        """Call a function with every message that arrives, before its target gets it."""
        self._observers.append(observer)
        self.watchers_changed()

    def stop_observing(self, observer: Callable[[Delivery], object]) -> bool:
        """End it; false if it had ended itself by raising."""
        try:
            self._observers.remove(observer)
        except ValueError:
            return False
        self.watchers_changed()
        return True

    def intercept(self, interceptor: Interceptor) -> None:
        """Ask a function about every request that arrives, whether it takes it over."""
        self._interceptors.append(interceptor)
        self.watchers_changed()

    def stop_intercepting(self, interceptor: Interceptor | None = None) -> None:
        """Remove this interceptor if it is installed; with None, remove all."""
        if interceptor is None:
            self._interceptors.clear()
        elif interceptor in self._interceptors:
            self._interceptors.remove(interceptor)
        self.watchers_changed()

    def forget_watchers(self) -> None:
        """End every observer and every interceptor."""
        self._observers.clear()
        self._interceptors.clear()
        self.watchers_changed()

    @property
    def is_watched(self) -> bool:
        """Whether somebody wants to see what arrives."""
        return bool(self._observers or self._interceptors or self._runtime.recorder is not None)

    def watchers_changed(self) -> None:
        """``is_watched`` may be another."""
