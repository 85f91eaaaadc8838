"""Implementation of the image engine (`qwed.engines.image`): loading, claim grammar and measurements."""
