"""The benchmark behind `scripts/bench`: it measures what the project promises, as ratios."""
