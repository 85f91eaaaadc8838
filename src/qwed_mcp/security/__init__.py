"""What decides before a tool of ours is dispatched."""
