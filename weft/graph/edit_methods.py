"""The methods of Graph that change one; what they do stands in edit.py and edit_inline.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.imports import deferred_imports

if TYPE_CHECKING:
    from .graph import Graph
    from .symbol import Symbol


class Editable:
    """A graph that can be changed: every method returns a new graph and leaves this one as it is.

    The new graph is verified, shares the nodes that did not change, keeps names and source lines,
    and understands symbols of this one: they can be fetched, fed, built with and edited further.
    A symbol and a name go on meaning what their own node computes; what changes is who takes it.
    Gradients that are in the graph already are nodes like others: edit first, differentiate then.

    Values are given as symbols or by name; those inside of control flow by a path such as
    "scan/fn/tanh", for `replace`, `insert` and `rename`.
    """

    def replace(self: Any, old: Any, new: Any = None, *, name: str | None = None) -> Graph:
        """Return a graph in which every node that took `old` takes `new`.

        old    a symbol or a name; or a dictionary of several, with what stands for each
        new    a symbol of this graph, a name, a function of the old symbol, a tensor (read in each
               run, as in any graph), or numbers and arrays, which become a constant
        name   what the new value is called

        The nodes that `new` is computed by keep `old`. Both have one dtype and one shape; unknown
        sizes that placeholders tell may become known that way, in the whole graph.

        >>> import weft as wf
        >>> with wf.Graph() as graph:
        ...     x = wf.placeholder((None,), wf.float32, name="x")
        ...     h = wf.relu(x)
        ...     y = h.sum()
        >>> softer = graph.replace(h, lambda h: wf.tanh(x))
        >>> [round(float(wf.Session(g).run(y, {x: [-1.0, 1.0]})), 3) for g in (graph, softer)]
        [1.0, 0.0]
        """
        with deferred_imports:
            from .edit import replace  # noqa: PLC0415  (it knows Graph)
        return replace(self, old, new, name=name)

    def insert(self: Any, at: Any, fn: Any, *, name: str | None = None) -> Graph:
        """Return a graph in which what `fn` makes of a value stands for it in all nodes behind.

        >>> import weft as wf
        >>> with wf.Graph() as graph:
        ...     x = wf.placeholder((2,), wf.float32, name="x")
        ...     y = x.sum()
        >>> scaled = graph.insert(x, lambda x: x / 255.0, name="scaled")
        >>> wf.Session(scaled).run([y, "scaled"], {x: [255.0, 51.0]})
        [array(1.2, dtype=float32), array([1. , 0.2], dtype=float32)]
        """
        with deferred_imports:
            from .edit import insert  # noqa: PLC0415  (it knows Graph)
        return insert(self, at, fn, name=name)

    def prune(self: Any, outputs: Any) -> Graph:
        """Return a graph of only those nodes that some values need.

        outputs   symbols, names or updates, or nests of them
        """
        with deferred_imports:
            from .edit import prune  # noqa: PLC0415  (it knows Graph)
        return prune(self, outputs)

    def rename(self: Any, value: Any, name: str) -> Graph:
        """Return a graph in which a value, given as a symbol or by name, is called otherwise."""
        with deferred_imports:
            from .edit import rename  # noqa: PLC0415  (it knows Graph)
        return rename(self, value, name)

    def substitute(self: Any, values: Any) -> Graph:
        """Return a graph without some placeholders: values, by symbol or name, stand for them.

        A value is what `replace` takes; another placeholder, for example. Sizes that become known
        are known in the whole graph.

        >>> import weft as wf
        >>> with wf.Graph() as graph:
        ...     x = wf.placeholder(("n", 3), wf.float32, name="x")
        ...     w = wf.placeholder((3,), wf.float32, name="w")
        ...     y = x @ w
        >>> fixed = graph.substitute({"w": [1.0, 2.0, 3.0], "x": wf.ones(2, 3)})
        >>> fixed.symbol(y)
        symbol('matmul', shape=(2,), dtype=float32)
        """
        with deferred_imports:
            from .edit import substitute  # noqa: PLC0415  (it knows Graph)
        return substitute(self, values)

    def symbol(self: Any, value: Any) -> Symbol:
        """Return the symbol of this graph that a name, or a symbol of an earlier one, stands for.

        >>> import weft as wf
        >>> with wf.Graph() as graph:
        ...     x = wf.placeholder((2,), wf.float32, name="x")
        >>> graph.symbol("x")
        symbol('x', shape=(2,), dtype=float32)
        """
        with deferred_imports:
            from .members import member  # noqa: PLC0415  (it knows Graph)
            from .symbol import make_symbol  # noqa: PLC0415  (beside the other)
        return make_symbol(self, member(self, value, "symbol", "find"))

    def __call__(self: Any, *args: Any, outputs: Any = None, **named: Any) -> Any:
        """Return what this graph makes of values for its placeholders.

        args, named   for the placeholders in their order, or by name
        outputs       what to return: symbols or names of this graph, or a nest of them; by default
                      its outputs, or else all results

        Inside of another graph its nodes are copied there, in a name scope of its name, and symbols
        are returned; gradients pass. On values it runs, compiled unless gradients are asked for.

        >>> import weft as wf
        >>> with wf.Graph("square") as square:
        ...     x = wf.placeholder((None,), wf.float32, name="x")
        ...     y = x * x
        >>> square(wf.tensor([1.0, 2.0]))
        tensor([1., 4.])
        >>> with wf.Graph() as graph:
        ...     a = wf.placeholder((3,), wf.float32, name="a")
        ...     print(square(x=a + 1.0))
        symbol('square/mul', shape=(3,), dtype=float32)
        """
        with deferred_imports:
            from .edit_call import call  # noqa: PLC0415  (it knows Graph)
        return call(self, args, named, outputs)

    @staticmethod
    def merge(*graphs: Any, join: bool = False) -> Graph:
        """Return one graph of all nodes of several, whose symbols it understands.

        join   let placeholders of one name be one; else the later ones get other names, and so do
               nodes, named values and unknown sizes

        States that several graphs read are read once. Random numbers are drawn, and what is written
        to tensors holds, as if the graphs had been built one after another.

        >>> import weft as wf
        >>> with wf.Graph() as first:
        ...     x = wf.placeholder((2,), wf.float32, name="x")
        ...     y = x.sum()
        >>> with wf.Graph() as second:
        ...     x = wf.placeholder((2,), wf.float32, name="x")
        ...     z = x.prod()
        >>> both = wf.Graph.merge(first, second, join=True)
        >>> wf.Session(both).run([y, z], {"x": [3.0, 4.0]})
        [array(7., dtype=float32), array(12., dtype=float32)]
        """
        with deferred_imports:
            from .edit_inline import merge  # noqa: PLC0415  (it knows Graph)
        return merge(graphs, join=join)
