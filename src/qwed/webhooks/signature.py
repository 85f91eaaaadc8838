"""`QWED-Signature` header: HMAC-SHA256 over the time and the body. Standard library only, so it can be copied."""

import hashlib
import hmac
import re

TOLERANCE_SECONDS = 300
"""Largest difference to the current time: an older signature may be a replay, a newer one has a wrong clock."""

_HEADER = re.compile(r"t=([0-9]{1,12})((?:,v1=[0-9a-f]{64}){1,4})")


def sign(secret: str, timestamp: int, body: bytes) -> str:
    """Return the header for `body` sent at `timestamp`, in whole seconds."""
    return f"t={timestamp},v1={_mac(secret, str(timestamp), body)}"


def verify(secret: str, header: str, body: bytes, now: float, tolerance: float = TOLERANCE_SECONDS) -> bool:
    """Return True if `body` was signed with `secret` within `tolerance` seconds of `now`."""
    match = _HEADER.fullmatch(header)
    if match is None or not secret or not abs(now - int(match[1])) <= tolerance:
        return False
    expected = _mac(secret, match[1], body)
    return any(hmac.compare_digest(expected, signature) for signature in match[2].split(",v1=")[1:])


def _mac(secret: str, timestamp: str, body: bytes) -> str:
    return hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
