"""Natural language into formal input, through a model that an operator has configured. Off by default."""
