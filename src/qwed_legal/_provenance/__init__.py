"""Implementation of the provenance guard."""
