"""The audit log: what one decision leaves behind, and the signed statements about it."""
