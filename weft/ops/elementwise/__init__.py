"""Operators that work element by element, with broadcasting."""

NAMESPACE = "wf"
