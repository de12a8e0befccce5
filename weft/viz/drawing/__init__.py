"""Pictures of graphs: what to show, where it stands, and how it is written to a file.

A Graph enters; DOT or SVG text, or a PNG file, leaves. The stages, each a file:

    picture   nodes become boxes in nested groups, joined by edges (labels, style: what they say)
    dot       a picture as DOT text, and the dot program, if it is installed
    level     the boxes of one group in layers, with long edges cut into steps
    order     the order in each layer that has few crossings
    place     the place of each box along its layer
    layout    all groups, from the innermost out, and the curves of the edges: a scene
    svg, png  a scene as a file

Imports core and the graph beside it. The way in is viz/draw.py.
"""
