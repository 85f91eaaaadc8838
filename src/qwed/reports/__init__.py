"""Compliance report of an agent as PDF, JSON or CSV (spec 7.3). Pure: data in, bytes out."""
