"""A2A proxy: verifies the messages between clients and one agent."""
