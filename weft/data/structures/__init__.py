"""Structures: trees, parsed sentences and molecules, each example of a shape of its own.

Enter: treebanks in brackets, CoNLL-U or JSON, or a seed. Leave: plain Python objects, for
functions that are written for one example (`wf.batched` runs them for many).
"""

from .brackets import parse_brackets, read_brackets
from .conllu import EmptyNode, MultiwordToken, Sentence, Token, parse_conllu, read_conllu
from .grammar import Parse, arc_standard, make_parses, replayed
from .jsontrees import read_json_trees
from .molecules import ATOMS, Molecule, make_molecules
from .randomtrees import make_trees
from .tree import Tree

__all__ = [
    "ATOMS",
    "EmptyNode",
    "Molecule",
    "MultiwordToken",
    "Parse",
    "Sentence",
    "Token",
    "Tree",
    "arc_standard",
    "make_molecules",
    "make_parses",
    "make_trees",
    "parse_brackets",
    "parse_conllu",
    "read_brackets",
    "read_conllu",
    "read_json_trees",
    "replayed",
]
