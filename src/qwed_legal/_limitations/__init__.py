"""Table of limitation periods, and its lookup by place and claim type."""
