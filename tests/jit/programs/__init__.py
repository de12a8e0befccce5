"""Small programs as users write them, one subject a file; see tests/jit/harness.py."""
