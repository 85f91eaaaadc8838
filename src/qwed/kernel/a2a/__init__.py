"""Agent-to-agent messages: sender authentication, verdict and record."""
