"""What a server says of its tools: pinned when first seen, held when it changes or tries to instruct."""
