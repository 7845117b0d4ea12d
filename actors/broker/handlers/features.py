"""Handler of UpdateFeatures; the rules are in ``statemachines.controller.flows.features``."""

from __future__ import annotations

from ....protocol.admin import UpdateFeaturesRequest, UpdateFeaturesResponse
from ....protocol.errors import ErrorCode
from ....statemachines.controller.events import FeatureResults
from ...delivery import Delivery
from ...port import Handler
from ..parts import BrokerHandlers


class FeatureHandlers(BrokerHandlers):
    """The controller alone changes features (KIP-584)."""

    def by_type(self) -> dict[type, Handler]:
        return {UpdateFeaturesRequest: self.update_features}

    def update_features(
        self, request: UpdateFeaturesRequest, delivery: Delivery
    ) -> UpdateFeaturesResponse | None:
        if not self._controller.is_active:
            return UpdateFeaturesResponse(ErrorCode.NOT_CONTROLLER)

        def answer(outcome: ErrorCode | FeatureResults) -> None:
            if isinstance(outcome, ErrorCode):
                response = UpdateFeaturesResponse(outcome)
            else:
                results = ((name, error, text) for name, (error, text) in outcome.items())
                response = UpdateFeaturesResponse(ErrorCode.NONE, None, tuple(results))
            self._node.reply(delivery, response)

        updates = {update.name: update for update in request.updates}
        self._controller.update_features(updates.values(), answer)
        return None
