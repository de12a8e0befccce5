"""PyTorch's functions of tensors: tables of names over Weft's operators, and adapters.

Every module here has a table `FUNCTIONS`, by PyTorch's names; `catalogue.py` joins them.
"""
