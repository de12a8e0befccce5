"""Matrix products: plans of blocks and tiles, and the code that carries them out."""
