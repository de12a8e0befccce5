"""Operators that move elements without changing them: shapes, axes, joins, splits, padding."""

NAMESPACE = "wf"
