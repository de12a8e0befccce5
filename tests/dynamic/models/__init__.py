"""Networks over structures as plain eager code for one example, and examples for them.

`MODELS` maps names to classes; `Model(dtype, cells)` has `parameters`, `examples(count)` and
`loss(example)`, which returns a tree of tensors, the first of which is the loss. With `cells`, the
steps that are called often are cells.
"""

from .graphs import Molecules, Routing
from .memory import BeamSearch, StackLSTM, TuringMemory
from .sequences import Tagger, TransitionParser
from .trees import ChildSum, NaryTreeLSTM, RecursiveAutoencoder, RelationTree

MODELS = {
    model.__name__: model
    for model in (
        *(ChildSum, NaryTreeLSTM, RelationTree, RecursiveAutoencoder),
        *(Tagger, TransitionParser, StackLSTM, TuringMemory, BeamSearch, Molecules, Routing),
    )
}
