"""The public namespaces: which names they offer, as operators and composites declare it.

A declaration says in which namespaces it is public, all its names in each of them:

    public=("wf", "nn.functional")

or which names in which: `public={"linalg": ("norm",)}`. Otherwise the package that declares it
says so for all it holds, by a constant `NAMESPACE`; operators that are no methods of tensors are
then taken for building blocks, which only `weft.extend` shows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence

Public = bool | Iterable[str] | Mapping[str, Sequence[str]]

# The names of each namespace, with the operators and composites they stand for. `wf` is complete
# once Weft is imported; others grow as packages are loaded.
namespaces: dict[str, dict[str, str]] = {
    "wf": {},
    "linalg": {},
    "masked": {},
    "special": {},
    "nn.functional": {},
}


def publish(name: str, aliases: Iterable[str], public: Public, module: str) -> None:
    """Enter the names of an operator or composite, which a module declares, into namespaces."""
    if public is True:
        namespace = getattr(sys.modules.get(module.rpartition(".")[0]), "NAMESPACE", None)
        public = () if namespace is None else (namespace,)
    if public is False:
        return
    names = (name, *aliases)
    shown = public if isinstance(public, Mapping) else dict.fromkeys(public, names)
    for namespace, offered in shown.items():
        for each in offered:
            assert each not in namespaces[namespace], f"{namespace}.{each} is declared twice"
            namespaces[namespace][each] = name
