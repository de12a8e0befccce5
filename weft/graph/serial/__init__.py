"""Graphs as data that files hold."""
