"""Derivatives of static graphs: forward and reverse mode as nodes that extend the graph."""
