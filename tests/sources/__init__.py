"""Tests of `backend.sources`, on real small files that the tests write themselves."""
