"""Derivatives as text: NumPy programs that stand alone."""
