"""The parts of the guard for skills."""
