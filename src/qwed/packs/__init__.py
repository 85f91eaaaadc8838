"""What the domain packs share: how a result reads, and how dates, countries and claims are read."""
