"""Guards under their published import names."""
