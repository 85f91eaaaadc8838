"""The parts of the provenance guard."""
