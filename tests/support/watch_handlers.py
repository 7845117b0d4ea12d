"""Handlers of watch events that ignore everything, for tests to override."""

from __future__ import annotations


class ZnodeChangeHandler:
    """A change handler that ignores everything; tests override the methods they need."""

    def on_creation(self) -> object:
        return None

    def on_deletion(self) -> object:
        return None

    def on_data_change(self) -> object:
        return None


class ZnodeChildChangeHandler:
    """A child change handler that ignores everything; tests override ``on_child_change``."""

    def on_child_change(self) -> object:
        return None
