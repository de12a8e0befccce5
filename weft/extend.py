"""The door for extensions: declare operators, composites and derivative rules of your own.

    from weft.extend import F, Sample, elementwise, op

    @op(elementwise, promote="float")
    def cube(x: Tensor) -> Tensor:
        \"\"\"Return x**3.\"\"\"

`attach` makes operators declared after `import weft` available as Tensor methods. CONTRIBUTING.md
explains the rules. `register` gives names to layers, losses, optimizers, schedules, metrics,
transforms and datasets of your own, for `fit`, estimators and TOML configurations. `rewrite` gives
the optimiser rules of your own, in the language of its own tables: `P`, `Var` and `Number`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .core.imports import lazy_attributes
from .core.methods import attach_operators as attach
from .core.op import (
    F,
    Op,
    composite,
    elementwise,
    general,
    load_all,
    movement,
    op,
    random,
    reduction,
    registry,
)
from .core.samples import ErrorSample, Sample, Sampler
from .core.shape import TensorType
from .core.tensor import Tensor

if TYPE_CHECKING:
    from .passes.match import Match, Number, P, Var
    from .passes.rule_door import RegisteredRule
    from .passes.user_rules import RewriteError

# The passes, which most extensions do without, are loaded when a rule is written.
__getattr__ = lazy_attributes(
    globals(),
    {
        "weft.passes.match": ("Match", "Number", "P", "Var"),
        "weft.passes.user_rules": ("RewriteError",),
    },
)

__all__ = [
    "ErrorSample",
    "F",
    "Match",
    "Number",
    "Op",
    "P",
    "RewriteError",
    "Sample",
    "Sampler",
    "Tensor",
    "TensorType",
    "Var",
    "attach",
    "composite",
    "elementwise",
    "general",
    "load_all",
    "movement",
    "op",
    "random",
    "reduction",
    "register",
    "registry",
    "rewrite",
]


def register(kind: str, name: str, make: Callable[..., Any]) -> None:
    """Name a class or function of your own for `fit`, estimators and TOML configurations.

    Its parameters are its options.

    kind   "layers", "architectures", "losses", "optimizers", "schedules", "metrics",
           "transforms", "batch_transforms" or "datasets"
    """
    from .train.names import register as register_name  # noqa: PLC0415  (loads all layers)

    register_name(kind, name, make)


def rewrite(
    name: str,
    pattern: Any,
    replacement: Any,
    *,
    stage: str = "canonicalize",
    check: bool = True,
    examples: Sequence[Any] | None = None,
) -> RegisteredRule:
    """Give the optimiser a rule: wherever the pattern stands, compute the replacement.

    pattern       a call of operators on variables and numbers: `P.log(P.exp(Var("x")))`
    replacement   a variable, a call of operators without attributes, or a function of the Match
                  that returns a value, or None where the rule does not apply after all
    stage         "canonicalize": again and again, until nothing changes; or "stabilize": once, and
                  infinities may become numbers
    check         compare both sides on examples first, and refuse the rule if they differ
    examples      what to compare on: (function, *arrays), where the function builds what matches;
                  by default they are drawn from the pattern

    It holds from now on for whatever is compiled (`wf.Session`, `wf.compile`, `wf.jit`) and for
    `graph.optimize`; programs that exist are compiled anew. `rule.remove()` ends that, and so does
    the end of a `with` block. A rule applies only where what it builds has the very type of what it
    stands for.

    >>> from weft.extend import P, Var, rewrite
    >>> import weft as wf
    >>> x = Var("x")
    >>> with wf.Graph() as graph:
    ...     a = wf.placeholder((3,), wf.float32, name="a")
    ...     y = wf.log(wf.sqrt(a * a + 1.0))
    >>> with rewrite("log of a root", P.log(P.sqrt(x)), P.mul(P.log(x), 0.5)):
    ...     [node.op.name for node in graph.optimize([y]) if node.inputs]
    ['mul', 'log1p', 'mul']
    """
    from .passes.rule_door import register_rule  # noqa: PLC0415  (loads all passes)

    return register_rule(name, pattern, replacement, stage, check, examples)
