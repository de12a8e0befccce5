"""Divide a program among processes: placements are carried on, communication is inserted.

Enters: a graph of whole tensors, some of which are placed (ops/collective/placed.py). Leaves: the
graph of one process, which computes parts, with exchanges where parts must become whole.

    choices   which axis of each operation is divided: placements carried on, forwards and backwards
    forms     what of a value there is: whole, in parts, parts of a sum; and how one becomes another
    divide    the new graph
"""
