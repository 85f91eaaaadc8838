"""The `QWED-Signature` header: HMAC-SHA256 over the time and the body. Standard library only, so it can be copied."""

import hashlib
import hmac
import re

TOLERANCE = 300
"""Seconds: an older signature may be a replay, a newer one is from a clock that is wrong."""

_HEADER = re.compile(r"t=([0-9]{1,12})((?:,v1=[0-9a-f]{64}){1,4})")


def sign(secret: str, timestamp: int, body: bytes) -> str:
    """The header for `body` sent at `timestamp`, in whole seconds."""
    return f"t={timestamp},v1={_mac(secret, str(timestamp), body)}"


def verify(secret: str, header: str, body: bytes, now: float, tolerance: float = TOLERANCE) -> bool:
    """Whether `body`, as it came, was signed with `secret` within `tolerance` seconds of `now`."""
    found = _HEADER.fullmatch(header)
    if found is None or not secret or not abs(now - int(found[1])) <= tolerance:
        return False
    expected = _mac(secret, found[1], body)
    return any(hmac.compare_digest(expected, given) for given in found[2].split(",v1=")[1:])


def _mac(secret: str, timestamp: str, body: bytes) -> str:
    return hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
