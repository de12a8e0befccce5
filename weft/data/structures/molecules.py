"""Random molecules: graphs of atoms and bonds that keep the valences of chemistry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ..checks import as_count, as_probability
from ..streams import Array
from .choices import Choices

ATOMS: Final = ("C", "N", "O", "F")
_VALENCE: Final = (4, 3, 2, 1)
_SHARES: Final = (0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 3)  # how often atoms are drawn


@dataclass(frozen=True, slots=True)
class Molecule:
    """A graph: `atoms` as numbers into ATOMS, `bonds` as pairs of atoms, `orders` 1, 2 or 3.

    label   1 where some carbon has a double bond to oxygen (a carbonyl group), else 0
    """

    atoms: Array
    bonds: Array
    orders: Array
    label: int

    def __len__(self) -> int:
        return len(self.atoms)

    @property
    def edges(self) -> Array:
        """Return where messages come from, and where they go: each bond in both directions."""
        both: Array = np.concatenate([self.bonds, self.bonds[:, ::-1]]).T
        return both


def make_molecules(
    n: int = 100,
    *,
    atoms: tuple[int, int] = (4, 16),
    rings: float = 0.3,
    seed: int | None = None,
) -> list[Molecule]:
    """Make random molecules of carbon, nitrogen, oxygen and fluorine; hydrogen is left out.

    atoms   the least and the most atoms of a molecule
    rings   the probability that a ring is closed

    >>> from weft.data import make_molecules
    >>> molecule = make_molecules(1, atoms=(5, 5), rings=0.0, seed=0)[0]
    >>> len(molecule), len(molecule.bonds)
    (5, 4)
    """
    low, high = (as_count("make_molecules", "atoms", x) for x in _pair(atoms))
    rings = as_probability("make_molecules", "rings", rings)
    draws = Choices(seed)
    count = as_count("make_molecules", "n", n)
    return [_molecule(draws, draws.integer(low, high), rings) for _ in range(count)]


def _pair(atoms: Any) -> tuple[int, int]:
    if not isinstance(atoms, tuple) or len(atoms) != 2 or atoms[0] > atoms[1]:
        raise ValueError(
            f"make_molecules: atoms must be (least, most), in order. Received: {atoms!r}"
        )
    return atoms


def _molecule(draws: Choices, size: int, rings: float) -> Molecule:
    """Return a random tree of atoms, with some bonds doubled and some rings closed."""
    kinds = [0]
    free = [_VALENCE[0]]
    bonds: list[tuple[int, int]] = []
    orders: list[int] = []
    while len(kinds) < size:
        spot = draws.choice([i for i, left in enumerate(free) if left])
        # Where one place is left, what comes last must not close the molecule too early.
        closing = sum(free) == 1 and len(kinds) + 1 < size
        kind = 0 if closing else draws.choice(_SHARES)
        order = 1
        if not closing and min(free[spot], _VALENCE[kind]) > 1 and draws.chance(0.3):
            order = 2 if sum(free) + _VALENCE[kind] > 4 else 1
        bonds.append((spot, len(kinds)))
        orders.append(order)
        free[spot] -= order
        kinds.append(kind)
        free.append(_VALENCE[kind] - order)
        if not sum(free) and len(kinds) < size:  # nothing can be added: the last becomes carbon
            free[-1] += _VALENCE[0] - _VALENCE[kinds[-1]]
            kinds[-1] = 0
    _close_rings(draws, free, bonds, orders, rings)
    return Molecule(
        np.array(kinds, np.int64),
        np.array(bonds, np.int64).reshape(-1, 2),
        np.array(orders, np.int64),
        _has_carbonyl(kinds, bonds, orders),
    )


def _close_rings(
    draws: Choices,
    free: list[int],
    bonds: list[tuple[int, int]],
    orders: list[int],
    rings: float,
) -> None:
    known = {frozenset(pair) for pair in bonds}
    while draws.chance(rings):
        spots = [i for i, left in enumerate(free) if left]
        if len(spots) < 2:
            return
        a, b = draws.choice(spots), draws.choice(spots)
        if a != b and frozenset((a, b)) not in known:
            bonds.append((a, b))
            orders.append(1)
            known.add(frozenset((a, b)))
            free[a], free[b] = free[a] - 1, free[b] - 1


def _has_carbonyl(kinds: list[int], bonds: list[tuple[int, int]], orders: list[int]) -> int:
    pairs = ({kinds[a], kinds[b]} for a, b in bonds)
    found = (
        order == 2 and pair == {ATOMS.index("C"), ATOMS.index("O")}
        for pair, order in zip(pairs, orders, strict=True)
    )
    return int(any(found))
