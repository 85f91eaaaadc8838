"""Benchmarks run by `make bench`: cost of a decision as ratios within one run."""
