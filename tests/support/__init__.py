"""Shared test infrastructure: real servers, databases, clients and checks."""
