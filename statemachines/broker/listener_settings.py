"""Listeners in a broker's settings: parsing and checks.

Source: Kafka's ``KafkaConfig``, ``CoreUtils.listenerListToEndPoints``, ``DynamicListenerConfig``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from ...protocol.release_configs import ConfigException
from ...protocol.versions import Behaviour

PROTOCOL_MAP = "listener.security.protocol.map"
LISTENER_SETTINGS = ("listeners", "advertised.listeners", PROTOCOL_MAP)

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_END_POINT = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")

Text = Callable[[str], str | None]
"""Returns a setting by its name, or None if it is not set."""


def listener_names(text: str) -> list[str]:
    """Return the listeners in a list, in lower case as in the names of per-listener settings."""
    return [name.strip().lower() for name in re.findall(r"([^,]*?)://", text)]


def check_listeners(old: Text, new: Text, behaviour: Behaviour) -> None:
    """Raise ``ConfigException`` if the settings of listeners are inconsistent
    (``KafkaConfig.validateValues``)."""
    protocols = _protocols(new)
    if new(PROTOCOL_MAP) == old(PROTOCOL_MAP):
        # The broker's present listeners need not be in the map, as they may be set in other ways.
        present = (name.upper() for name in listener_names(old("listeners") or ""))
        protocols = {**dict.fromkeys(present, "PLAINTEXT"), **protocols}
    listeners = _end_points(new("listeners") or "", protocols, behaviour)
    advertised = listeners
    if new("advertised.listeners") is not None:
        advertised = _end_points(new("advertised.listeners") or "", protocols, behaviour)
    if not advertised and behaviour.config_changes_preprocessed:
        _refuse("There must be at least one broker advertised listener.")
    own = listener_names(old("listeners") or "")
    between_brokers = "PLAINTEXT" if "plaintext" in own or not own else own[0].upper()
    if between_brokers not in advertised:
        _refuse(
            "inter.broker.listener.name must be a listener name defined in advertised.listeners. "
            "The valid options based on currently configured listeners are "
            f"{','.join(advertised)}"
        )
    if not set(advertised) <= set(listeners):
        _refuse(
            "advertised.listeners listener names must be equal to or a subset of the ones defined "
            f"in listeners. Found {','.join(advertised)}. The valid options based on the current "
            f"configuration are {','.join(listeners)}"
        )
    if "0.0.0.0" in advertised.values():
        _refuse(
            "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a routable "
            "IP address."
        )


def check_protocols_stay(old: Text, new: Text) -> None:
    """Raise ``ConfigException`` if an existing listener would get another protocol
    (``DynamicListenerConfig.validateReconfiguration``)."""
    before, after = _protocols(old), _protocols(new)
    for name in listener_names(old("listeners") or ""):
        listener = name.upper()
        if listener in before and listener in after and before[listener] != after[listener]:
            shown = f"ListenerName({listener})"
            raise ConfigException(
                f"Security protocol cannot be updated for existing listener {shown}"
            )


def _protocols(setting: Text) -> dict[str, str]:
    """Return the security protocol of each listener; raises ``ConfigException``."""
    protocols = {}
    for name, protocol in pairs(PROTOCOL_MAP, setting):
        if protocol not in _PROTOCOLS:
            raise ConfigException(
                f"Invalid security protocol `{protocol}` defined in listener.security.protocol.map"
            )
        protocols[name.upper()] = protocol
    return protocols


def pairs(name: str, setting: Text) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a setting that is a list of ``key:value``; raises ``ConfigException`` if
    an item has no colon."""
    text = (setting(name) or "").strip()
    for item in re.split(r"\s*,\s*", text) if text else ():
        key, colon, value = item.rpartition(":")
        if not colon:
            raise ConfigException(
                f"Error parsing configuration property '{name}': begin 0, end -1, length "
                f"{len(item)}"
            )
        yield key.strip(), value.strip()


def _end_points(text: str, protocols: Mapping[str, str], behaviour: Behaviour) -> dict[str, str]:
    """Return the host of each listener; raises ``ConfigException``."""
    hosts: dict[str, str] = {}
    ports: list[int] = []
    count = 0
    for item in re.split(r"\s*,\s*", text.strip()) if text.strip() else ():
        found = _END_POINT.fullmatch(item)
        reason = f"Unable to parse {item} to a broker endpoint"
        if found is not None:
            name = found.group(1).upper()
            reason = (
                "" if name in protocols else f"No security protocol defined for listener {name}"
            )
            hosts[name] = found.group(2)
            ports += [int(found.group(3))] if int(found.group(3)) else []
            count += 1
        if reason:
            raise ConfigException(f"Error creating broker listeners from '{text}': {reason}")
    if len(hosts) < count:
        _refuse(f"Each listener must have a different name, listeners: {text}")
    if len(set(ports)) < len(ports) and not behaviour.config_changes_preprocessed:
        _refuse(f"Each listener must have a different port, listeners: {text}")
    return hosts


def _refuse(text: str) -> None:
    raise ConfigException(f"requirement failed: {text}")
