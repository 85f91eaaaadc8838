"""RFC 6962, section 2.1, literally: every root and path from all the leaves, by the definitions.

It shares no code with the server and its verifier, and is slow.
"""

from collections.abc import Sequence
from hashlib import sha256

Leaves = Sequence[bytes]
"""D[n], the inputs."""


def mth(inputs: Leaves) -> bytes:
    """Return the Merkle Tree Hash (2.1)."""
    if not inputs:
        return sha256().digest()
    if len(inputs) == 1:
        return sha256(b"\x00" + inputs[0]).digest()
    k = largest_power_below(len(inputs))
    return sha256(b"\x01" + mth(inputs[:k]) + mth(inputs[k:])).digest()


def path(m: int, inputs: Leaves) -> list[bytes]:
    """Return the Merkle audit path for the (m+1)th input (2.1.1)."""
    if len(inputs) == 1:
        return []
    k = largest_power_below(len(inputs))
    if m < k:
        return [*path(m, inputs[:k]), mth(inputs[k:])]
    return [*path(m - k, inputs[k:]), mth(inputs[:k])]


def proof(m: int, inputs: Leaves) -> list[bytes]:
    """Return the Merkle consistency proof for a previous hash over the first m inputs (2.1.2)."""
    return subproof(m, inputs, known=True) if 0 < m < len(inputs) else []


def subproof(m: int, inputs: Leaves, *, known: bool) -> list[bytes]:
    """Return SUBPROOF(m, D[n], b) (2.1.2); `known` is True if the client has the hash of the subtree."""
    if m == len(inputs):
        return [] if known else [mth(inputs)]
    k = largest_power_below(len(inputs))
    if m <= k:
        return [*subproof(m, inputs[:k], known=known), mth(inputs[k:])]
    return [*subproof(m - k, inputs[k:], known=False), mth(inputs[:k])]


def largest_power_below(n: int) -> int:
    """Return the power of two k with k < n <= 2k."""
    k = 1
    while 2 * k < n:
        k *= 2
    return k
