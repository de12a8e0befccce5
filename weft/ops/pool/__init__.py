"""Pooling in one to three dimensions: maxima, averages, adaptive and global forms, unpooling."""

NAMESPACE = "nn.functional"
