"""Benchmarks: ratios beside the peers in one run, CPU seconds. `make bench` runs them all."""
