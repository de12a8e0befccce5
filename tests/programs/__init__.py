"""Generators of random programs, for tests that compare two ways of computing the same."""
