"""The import names of the published documents for engines and guards."""
