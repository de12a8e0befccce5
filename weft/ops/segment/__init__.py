"""Segments: rows that are reduced in groups, as edges of a graph or words of a sentence are.

Values and what says in which segment each row lies enter, a row for each segment leaves. Written
in operators that scatter and gather. Imports core and operators.
"""

NAMESPACE = "wf"
