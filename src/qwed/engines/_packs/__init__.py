"""Input limits and JSON encoding shared by the engines of the domain packs."""
