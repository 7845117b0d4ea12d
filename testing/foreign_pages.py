"""The check that a request to a local server does not come from a page of another site."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit


def is_trusted_host(host: str, own: frozenset[str]) -> bool:
    """Return whether a Host header names this machine.

    Another site can make its own name resolve to this machine (DNS rebinding), but the browser
    still sends that name. Addresses, names without a dot (as containers have), local names and
    ``own`` names are trusted.
    """
    name = urlsplit(f"//{host}").hostname
    if not name:
        return False
    if name in own or name.endswith((".localhost", ".internal")) or "." not in name.strip("[]"):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def refusal(
    headers: Mapping[str, str], own: frozenset[str], what: str, *, is_visit: bool = False
) -> str | None:
    """Return the reason to refuse a request, or None. ``what`` names the server in the text.

    A page of another site cannot suppress the headers that give it away: its browser sends Host
    and Origin, or Referer, or Sec-Fetch-Site.

    ``is_visit`` is True for requests of the page itself, to which other sites may link, as it holds
    no data of the cluster.
    """
    host = headers.get("host", "")
    try:
        if not is_trusted_host(host, own):
            return f"the Host {host!r} is not this server's; ask it by its address"
    except ValueError:
        return f"the Host {host!r} is no host"
    origin = headers.get("origin")
    if origin is not None and origin.partition("://")[2] != host:
        return f"{what} is not for pages of {origin}"
    if is_visit:
        return None
    referrer = headers.get("referer")  # sent by browsers that send no Origin
    if origin is None and referrer is not None and urlsplit(referrer).netloc != host:
        return f"{what} is not for pages of {referrer}"
    if headers.get("sec-fetch-site") in ("cross-site", "same-site"):
        return f"{what} is not for pages of other sites"
    return None
