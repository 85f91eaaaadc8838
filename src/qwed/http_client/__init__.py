"""Outgoing HTTP of the server, with bounds on time and size, and DNS lookups that block nothing."""
