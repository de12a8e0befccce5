"""Changing the size of images: interpolation, sampling at a grid, pixels to channels and back."""

NAMESPACE = "nn.functional"
