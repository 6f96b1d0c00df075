"""Tests of the load tests: the baseline, and what the performance lab is made of."""
