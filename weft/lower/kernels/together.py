"""Chains of kernels that run at the same time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...core.shape import Shape
from ..storage import Buffer, View
from .base import Kernel, Origins
from .control import all_within

if TYPE_CHECKING:
    from ..checks import Verifier
    from ..text import Text


@dataclass(frozen=True, slots=True)
class TogetherKernel(Kernel):
    """Lists of kernels that need nothing of one another, each run by one thread in its order.

    No chain writes what another one touches. What follows begins when all of them have ended. No
    chain holds chains: its kernels run on the thread that has it.
    """

    kind = "together"

    name: str
    chains: tuple[tuple[Kernel, ...], ...]
    origins: Origins = ()

    @property
    def views(self) -> list[View]:
        """Return nothing: its kernels do all."""
        return []

    @property
    def written(self) -> frozenset[int]:
        """Return nothing."""
        return frozenset()

    @property
    def parts(self) -> tuple[tuple[Kernel, ...], ...]:
        """Return the chains."""
        return self.chains

    @property
    def shape(self) -> Shape:
        """Return how many chains there are."""
        return (len(self.chains),)

    def within(self, buffers: Mapping[Buffer, Buffer]) -> TogetherKernel:
        """Return the same chains over other buffers."""
        return replace(self, chains=tuple(all_within(chain, buffers) for chain in self.chains))

    def verify(self, v: Verifier) -> None:
        """Check that there is something to run at the same time, and that chains hold none."""
        if len(self.chains) < 2 or not all(self.chains):
            v.fail(f"has chains of {[len(chain) for chain in self.chains]} kernels")
        if any(holds_chains(kernel) for chain in self.chains for kernel in chain):
            v.fail("holds chains within a chain")

    def lines(self, text: Text) -> list[str]:
        """Return the chains, one beside another."""
        lines = [f"{self.kind} {self.name}, {len(self.chains)} chains at the same time"]
        for i, chain in enumerate(self.chains):
            lines += [*(["beside"] if i else []), *text.inner(chain)]
        return lines


def holds_chains(kernel: Kernel) -> bool:
    """Tell whether a kernel is one of chains, or holds one."""
    inside = (inner for part in kernel.parts for inner in part)
    return isinstance(kernel, TogetherKernel) or any(map(holds_chains, inside))
