"""Python's `if`, `while` and `for` as control flow of a graph: functions rewritten to be traced."""
