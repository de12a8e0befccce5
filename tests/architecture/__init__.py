"""The layer rule: its tables, what reads imports, and what compares the two."""
