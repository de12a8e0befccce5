"""Operators that make fewer elements of many: sums, extrema, moments, norms, running totals."""

NAMESPACE = "wf"
