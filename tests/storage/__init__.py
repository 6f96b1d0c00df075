"""Tests of the storage: real files, every cut, every flipped bit, every failing call."""
