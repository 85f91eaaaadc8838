"""Signed, append-only log: leaves, Merkle tree, keys, attestations, verification."""
