"""Tests of Weft; the directory tree mirrors the package."""
