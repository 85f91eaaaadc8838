"""Parts of the image engine: the file, what it says of itself, and what is claimed of it. `image.py` is the door."""
