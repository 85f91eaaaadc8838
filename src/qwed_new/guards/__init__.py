"""The import names of the published documents for guards."""
