"""Tests of the chain core: vectors that freeze the format, a second implementation, properties."""
