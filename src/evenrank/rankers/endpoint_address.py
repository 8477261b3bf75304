"""Where a server is asked, and what may be written of that. Without an HTTP library, which only asking needs."""

from __future__ import annotations

import base64
import ipaddress
import re
import urllib.parse
from dataclasses import dataclass

from evenrank.io import EvenrankError
from evenrank.io.errors import quoted

from .endpoint_secrets import HIDDEN, SHORTEST


@dataclass(frozen=True, repr=False)
class Address:
    """Where to ask. ``shown``: what may be written of it; ``secrets``: what may not, longest first."""

    url: str
    shown: str
    login: str | None
    secrets: tuple[str, ...]

    @classmethod
    def of(cls, url: str, ending: str) -> Address:
        """``url`` with ``/ending``, if it does not have that yet. A name and password in it become a login.

        Raises EvenrankError, without the URL, if it cannot be used.
        """
        problem = "`url`: expected an address with http:// or https:// and a host"
        try:
            parts = urllib.parse.urlsplit(url)
            host, _ = parts.hostname, parts.port
        except ValueError:
            parts, host = urllib.parse.urlsplit(""), None
        if parts.scheme not in ("http", "https") or not host or not url.isprintable() or " " in url:
            found = f", found {quoted(url)}" if re.fullmatch(r"[\w./:-]{0,60}", url) else ""
            raise EvenrankError(problem + found)
        login, _, place = parts.netloc.rpartition("@")
        path = parts.path.rstrip("/")
        path = path if path.endswith(f"/{ending}") else f"{path}/{ending}"
        values = [part.partition("=")[2] or part for part in parts.query.split("&")]
        values += [urllib.parse.unquote_plus(value) for value in values]
        # A short one, such as a version, is in every text.
        secrets = {value for value in values if len(value) >= SHORTEST}
        header = None
        if login:
            pair = ":".join(urllib.parse.unquote(part) for part in login.partition(":")[::2])
            header = f"Basic {base64.b64encode(pair.encode()).decode()}"
            secrets |= {login, pair, header[6:], *(filter(None, [login.partition(":")[2], pair.partition(":")[2]]))}
        names = "&".join(
            re.sub("=.*", f"={HIDDEN}", part) if "=" in part else HIDDEN for part in parts.query.split("&")
        )
        shown = urllib.parse.urlunsplit((parts.scheme, place, path, "", "")) + (f"?{names}" if parts.query else "")
        used = urllib.parse.urlunsplit((parts.scheme, place, path, parts.query, ""))
        return cls(used, shown, header, tuple(sorted(secrets, key=lambda secret: (-len(secret), secret))))

    @property
    def host(self) -> str:
        """The name of the server."""
        return urllib.parse.urlsplit(self.url).hostname or ""

    @property
    def place(self) -> str:
        """The same with the port, if one is given, which tells servers on a machine apart."""
        return urllib.parse.urlsplit(self.url).netloc

    @property
    def loopback(self) -> bool:
        """Whether it is this machine, which is asked without a proxy."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost" or self.host.endswith(".localhost")
