"""Measures what the project promises, as ratios: the benchmark behind `scripts/bench`."""
