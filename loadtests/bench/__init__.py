"""The benchmark behind `scripts/bench`: what the project promises, as ratios in one run."""
