"""Bill of materials of an agent run."""
