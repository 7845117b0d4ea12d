"""Converts frames to messages and back: request headers, the version check, response framing.

A ``Codec`` belongs to one listener of one broker: the emulated release determines the versions
offered, and topic ids are resolved with that broker's metadata. A client's error is a
``ClientError``, whose text is the reason to log.

No library is used, as importing one blocks the event loop that all brokers share for more than
100 ms in the middle of a client's first request, and libraries copy records. The tests check this
codec against libraries instead.
"""

from __future__ import annotations

import functools
import struct
from struct import Struct
from typing import Any

from ...protocol.api_versions import API_NAMES, VersionRange, offered_ranges
from ...protocol.declaring.native import checks_arguments
from ...protocol.errors import ClientError, ErrorCode
from ...protocol.values import message
from ...protocol.versions import behaviour
from .api import ApiCall, CodecAnswer, UnknownElement
from .apis.api_versions import ApiVersionsResponse
from .messages.varints import Buffer, tagged_fields
from .parse_checks import parse_checks
from .registry import CODEC_RANGES, CODECS
from .repetitions import collectors
from .topic_names import NO_TOPIC_NAMES, TopicNames

API_VERSIONS = 18
FETCH = 1
CONSUMER_GROUP_HEARTBEAT = 68
_HEADER = Struct(">hhih")
_SIZE_AND_CORRELATION = Struct(">ii")
_JOINED_BYTES_MAX = 65536
"""Size up to which joining buffers by a copy is cheaper than writing several."""
_SMALL_PART_BYTES = 4096


@message
class RequestHeader:
    """Header of a request, version 1 or 2; ``body_offset`` is the body's position in the frame."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str
    body_offset: int


@functools.cache
def _offered_ranges(kafka_version: str) -> dict[int, VersionRange]:
    """Return the versions offered; cached, as they are slow to compute and all listeners share
    them."""
    return offered_ranges(kafka_version, CODEC_RANGES)


class Codec:
    """Decodes requests and encodes responses for one listener of one broker."""

    @checks_arguments
    def __init__(
        self,
        kafka_version: str,
        names: TopicNames = NO_TOPIC_NAMES,
        listener: str = "PLAINTEXT",
        *,
        has_consumer_groups: bool = False,
    ) -> None:
        """``has_consumer_groups`` offers all versions of ConsumerGroupHeartbeat, which recent
        clients of the consumer protocol need (KIP-848).

        Raises ``UsageError`` for a release that is not emulated.
        """
        self.ranges: dict[int, VersionRange] = dict(_offered_ranges(kafka_version))
        if has_consumer_groups:
            self.ranges[CONSUMER_GROUP_HEARTBEAT] = CODEC_RANGES[CONSUMER_GROUP_HEARTBEAT]
        """API key -> versions offered, as the ApiVersions response lists them."""
        flags = behaviour(kafka_version)
        self._features_epoch = 0 if flags.feature_versioning else None
        """Epoch of the finalised features, of which there are none: a broker with ZooKeeper
        supports no feature. None before KIP-584."""
        self._adds_own_range = flags.api_versions_range_told
        self._parse_checks = parse_checks(flags)
        self._collectors = collectors(flags)
        self._parses_fetches_late = flags.fetches_parsed_when_handled
        self._refuses_unknown_elements = flags.unknown_acl_elements_refused
        self._names = names
        self._listener = listener
        self._api_versions: dict[int, bytes] = {}

    def parse_header(self, frame: Buffer) -> RequestHeader:
        """Parse the header of a frame (without its size field).

        Raises ``ClientError`` for an API or version that is not offered, except that ApiVersions
        is accepted in any version (KIP-511).
        """
        try:
            key, version, correlation_id, id_size = _HEADER.unpack_from(frame)
        except struct.error:
            raise ClientError(
                f"a request of {len(frame)} bytes is too short for a header"
            ) from None
        offered = self.ranges.get(key)
        if offered is None or key not in CODEC_RANGES:
            raise ClientError(f"API key {key}{_name(key)} is not offered to clients")
        if not offered[0] <= version <= offered[1]:
            if key == API_VERSIONS:
                return RequestHeader(key, version, correlation_id, "", len(frame))
            raise ClientError(
                f"{API_NAMES[key]} version {version} is not offered; "
                f"versions {offered[0]} to {offered[1]} are"
            )
        at = _HEADER.size
        client_id = ""
        if id_size > 0:
            try:
                client_id = str(frame[at : at + id_size], "utf-8")
            except UnicodeDecodeError:
                raise ClientError("the client id is not UTF-8") from None
            at += id_size
        if version >= CODECS[key].flexible_from:
            _, at = tagged_fields(frame, at)
        if at > len(frame):
            raise ClientError("the request ends inside its header")
        return RequestHeader(key, version, correlation_id, client_id, at)

    def decode(self, api_key: int, api_version: int, body: Buffer) -> Any:
        """Decode a request's body to a message of ``protocol``, a ``SplitRequest``, a
        ``CodecAnswer`` or ``DROPPED``.

        If ``body`` is a view, records are views into it. Raises ``ClientError`` if the body cannot
        be decoded.
        """
        api = CODECS[api_key]
        if api_key == API_VERSIONS and not self._offers(api_key, api_version):
            own_range = {}
            if self._adds_own_range:
                own_range = {API_VERSIONS: self.ranges[API_VERSIONS]}
            return CodecAnswer(ApiVersionsResponse(ErrorCode.UNSUPPORTED_VERSION, own_range))
        call = ApiCall(api_version, self._names, self._listener)
        try:
            request = api.decode(body, call)
            if api_key in self._parse_checks:
                self._parse_checks[api_key](request, api_version)
            collect = self._collectors.get(api_key)
            return request if collect is None else collect(request, api_version)
        except UnknownElement as unknown:
            if self._refuses_unknown_elements:
                name = API_NAMES[api_key]
                raise ClientError(f"{name} version {api_version}: {unknown}") from None
            return unknown.request
        except (ClientError, struct.error, ValueError) as error:
            if api_key == FETCH and self._parses_fetches_late:
                from .late_fetches import parsed_when_handled  # imported here, as rarely needed

                return parsed_when_handled(api, body, call)
            raise ClientError(
                f"{API_NAMES[api_key]} version {api_version} cannot be decoded: {error}"
            ) from error

    def encode(
        self,
        api_key: int,
        api_version: int,
        response: Any,
        request: Any = None,
        throttle_ms: int = 0,
    ) -> list[Buffer]:
        """Return the body of a response as buffers to be sent in order; records are not copied."""
        api = CODECS[api_key]
        if api_key == API_VERSIONS:
            return [self._encode_api_versions(api_version, response)]
        call = ApiCall(api_version, self._names, self._listener, request, throttle_ms)
        return api.encode(response, call)

    def encode_frame(
        self,
        api_key: int,
        api_version: int,
        correlation_id: int,
        response: Any,
        request: Any = None,
        throttle_ms: int = 0,
    ) -> list[Buffer]:
        """Return a whole response with size and header, joined to few buffers where that pays."""
        parts = self.encode(api_key, api_version, response, request, throttle_ms)
        size = 4
        for part in parts:
            size += len(part)
        # ApiVersions keeps response header v0 so that any client can read it (KIP-511).
        if api_version >= CODECS[api_key].flexible_from and api_key != API_VERSIONS:
            header = _SIZE_AND_CORRELATION.pack(size + 1, correlation_id) + b"\0"
        else:
            header = _SIZE_AND_CORRELATION.pack(size, correlation_id)
        parts.insert(0, header)
        if size <= _JOINED_BYTES_MAX:
            return [b"".join(parts)]
        return _small_parts_joined(parts)

    def _offers(self, api_key: int, api_version: int) -> bool:
        low, high = self.ranges[api_key]
        return low <= api_version <= high

    def _encode_api_versions(self, api_version: int, response: ApiVersionsResponse) -> bytes:
        if not self._offers(API_VERSIONS, api_version):
            api_version = 0
        if response.ranges is None:
            cached = self._api_versions.get(api_version)
            if cached is not None:
                return cached
        whole = response.ranges is None
        answer = ApiVersionsResponse(
            response.error,
            self.ranges if whole else response.ranges,
            self._features_epoch if whole else None,
        )
        encoded = b"".join(CODECS[API_VERSIONS].encode(answer, ApiCall(api_version)))
        if response.ranges is None:
            self._api_versions[api_version] = encoded
        return encoded


def _name(key: int) -> str:
    return f" ({API_NAMES[key]})" if key in API_NAMES else ""


def _small_parts_joined(parts: list[Buffer]) -> list[Buffer]:
    """Return the same bytes in fewer buffers: runs of small buffers are joined."""
    joined: list[Buffer] = []
    small: list[Buffer] = []
    for part in parts:
        if len(part) < _SMALL_PART_BYTES:
            small.append(part)
            continue
        if small:
            joined.append(b"".join(small))
            small = []
        joined.append(part)
    if small:
        joined.append(b"".join(small))
    return joined
