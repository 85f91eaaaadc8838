"""What proves an answer afterwards: attestations, receipts, the log and the keys that sign it."""
