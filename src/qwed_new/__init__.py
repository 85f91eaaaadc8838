"""Import names of the published documents; the implementation is in `qwed`."""
