"""`make bench`: what a decision costs, as ratios within one run."""
