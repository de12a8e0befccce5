"""vmap inside a graph: nodes of one example, rebuilt for a batch."""
