"""Proofs of decisions: attestations, receipts, the log and its signing keys."""
