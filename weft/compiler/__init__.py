"""The compiler: every stage from a graph to something that runs, in order."""
