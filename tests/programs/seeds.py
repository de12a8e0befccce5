"""Seeds of random programs: a few for ordinary runs, many for long ones."""

from __future__ import annotations

from typing import Any

import pytest


def seeds(ordinary: int, long: int) -> list[Any]:
    """Return so many seeds to parametrize with, of which the later ones need --long."""
    later = [pytest.param(seed, marks=pytest.mark.long) for seed in range(ordinary, long)]
    return [*range(ordinary), *later]
