"""Handlers of watch events that ignore everything; a test overrides what matters to it."""

from __future__ import annotations


class ZnodeChangeHandler:
    """A change handler that ignores everything; override what matters."""

    def on_creation(self) -> object:
        return None

    def on_deletion(self) -> object:
        return None

    def on_data_change(self) -> object:
        return None


class ZnodeChildChangeHandler:
    """A child change handler that ignores everything; override ``on_child_change``."""

    def on_child_change(self) -> object:
        return None
