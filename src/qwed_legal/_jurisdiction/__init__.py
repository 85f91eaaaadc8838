"""The parts of the jurisdiction guard: places and their laws, conventions and who is bound by them."""
