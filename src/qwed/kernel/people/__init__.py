"""Whoever answers for agents: organisations and keys, approvals, and how they are told."""
