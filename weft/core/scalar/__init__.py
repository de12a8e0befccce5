"""Scalar functions: what operators compute for one element, in NumPy and in machine code."""
