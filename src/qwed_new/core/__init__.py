"""Tool approval under its published import name."""
