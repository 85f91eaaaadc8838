"""Multi-process server: a supervisor and its workers on one address."""
