"""`qwed a2a proxy`: stands before an A2A agent, and no message passes it unchecked in either direction."""
