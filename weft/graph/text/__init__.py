"""Graphs as text that people read."""
