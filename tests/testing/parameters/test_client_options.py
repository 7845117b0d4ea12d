"""Settings of modelled clients as declared for type checkers."""

from __future__ import annotations

import dataclasses
from typing import Literal, get_type_hints

import pytest
from fakekafka.actors.clients.consumer import ConsumerSettings
from fakekafka.actors.clients.group_consumer import GroupConsumerSettings
from fakekafka.actors.clients.producer import ProducerSettings
from fakekafka.actors.clients.transactional_producer import TransactionalProducerSettings
from fakekafka.actors.clients.transformer import TransformerSettings
from fakekafka.testing.parameters import client_options

CALLS = {
    ProducerSettings: (client_options.ProducerOptions, ""),
    ConsumerSettings: (client_options.ConsumerOptions, ""),
    GroupConsumerSettings: (client_options.GroupConsumerOptions, "group_id topics"),
    TransactionalProducerSettings: (
        client_options.TransactionalProducerOptions,
        "transactional_id",
    ),
    TransformerSettings: (client_options.TransformerOptions, "transactional_id inputs outputs"),
}
"""Options class per settings class, and the settings that are arguments of the call itself."""


@pytest.mark.parametrize("settings", CALLS, ids=lambda kind: kind.__name__)
def test_a_call_takes_each_setting_by_its_name_and_type(settings: type) -> None:
    """Every setting, including a new one, is declared to type checkers with its type."""
    options, arguments = CALLS[settings]
    names = [field.name for field in dataclasses.fields(settings)]
    types = get_type_hints(settings)
    expected = {name: types[name] for name in names if name not in arguments.split()}
    if "acks" in expected:
        expected["acks"] = int | Literal["all"]
    assert get_type_hints(options) == expected
