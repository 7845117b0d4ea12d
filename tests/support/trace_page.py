"""The page of a trace in a browser: what it shows, and when it has finished."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def shown(page: Any) -> int:
    """Return the number of the chosen event."""
    return int(page.inner_text("#position").split()[0].removeprefix("#"))


def until(page: Any, condition: str, argument: Any = None) -> None:
    """Wait until a function is true in the page, whose policy forbids Playwright's own way."""
    for _ in range(500):
        if page.evaluate(condition, argument):
            return
        page.wait_for_timeout(20)
    raise AssertionError(f"{condition} does not hold")


def wait_for_event(page: Any, seq: int) -> None:
    page.wait_for_selector(f'html[data-shown="{seq}"]', state="attached")


def press(page: Any, key: str) -> int:
    """Press a key that moves to another event and return its number."""
    before = page.inner_text("#position")
    page.keyboard.press(key)
    until(page, "before => document.getElementById('position').innerText !== before", before)
    return shown(page)


def open_state(page: Any) -> None:
    """Open the panel of states and wait until it is shown."""
    page.keyboard.press("4")
    page.wait_for_selector("#panel h2:has-text('State after it')")


def shown_after(page: Any, action: Callable[[], None]) -> str:
    """Return the number of the event that all parts of the page show after an action.

    Single parts change earlier, so that reading them at once may give old content.
    """
    was = page.get_attribute("html", "data-shown")
    action()
    page.wait_for_function("was => document.documentElement.dataset.shown !== was", arg=was)
    seq: str = page.get_attribute("html", "data-shown")
    return seq
