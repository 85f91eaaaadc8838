"""What the engines of the packs share: how much they are given, and how their results are told."""
