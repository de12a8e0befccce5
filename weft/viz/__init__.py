"""Pictures of graphs, and TensorBoard's view of them."""
