"""Functions for signals, under PyTorch's names (torch.signal). Imports core and creation only."""
