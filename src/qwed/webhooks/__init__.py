"""Telling people: signed notices to an organisation's webhook, from a durable outbox."""
