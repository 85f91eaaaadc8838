"""The engines under their published names."""
