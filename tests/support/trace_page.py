"""The page of a trace in a browser: what it shows, and when it has finished to show it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def shown(page: Any) -> int:
    """Number of the event that is chosen."""
    return int(page.inner_text("#position").split()[0].removeprefix("#"))


def until(page: Any, condition: str, argument: Any = None) -> None:
    """Wait until a function of the page answers yes; its policy forbids Playwright's own way."""
    for _ in range(500):
        if page.evaluate(condition, argument):
            return
        page.wait_for_timeout(20)
    raise AssertionError(f"{condition} does not hold")


def wait_for_event(page: Any, seq: int) -> None:
    page.wait_for_selector(f'html[data-shown="{seq}"]', state="attached")


def press(page: Any, key: str) -> int:
    """Press a key that chooses another event; the answer is its number."""
    before = page.inner_text("#position")
    page.keyboard.press(key)
    until(page, "before => document.getElementById('position').innerText !== before", before)
    return shown(page)


def open_state(page: Any) -> None:
    """Open the panel of states, and wait until it is there."""
    page.keyboard.press("4")
    page.wait_for_selector("#panel h2:has-text('State after it')")


def shown_after(page: Any, action: Callable[[], None]) -> str:
    """Number of the event that the page shows in all its parts after an action that moves it.

    Single parts of it change earlier: what is read as soon as one has changed may be old.
    """
    was = page.get_attribute("html", "data-shown")
    action()
    page.wait_for_function("was => document.documentElement.dataset.shown !== was", arg=was)
    seq: str = page.get_attribute("html", "data-shown")
    return seq
