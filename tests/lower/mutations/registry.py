"""The list of mutations, and what they are made with.

A mutation takes a program and a random generator; it returns a broken program and the kernel that
a message should name (None: any), or None where there is nothing to break in that way.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weft.lower.kernels import BranchKernel, LoopKernel, TogetherKernel, walk

MUTATIONS = {}


def mutation(*kinds, when=lambda kernel: True):
    """Register a mutation of a kernel of some kinds: kernel, rng, program -> kernel or None."""

    def register(change):
        def mutate(program, rng):
            found = [k for k in walk(program.kernels) if isinstance(k, kinds) and when(k)]
            if not found:
                return None
            kernel = found[rng.integers(len(found))]
            made = change(kernel, rng, program)
            return made and (with_kernel(program, kernel, made), made)

        MUTATIONS[change.__name__] = mutate
        return change

    return register


def of_program(change):
    """Register a mutation of a whole program."""
    MUTATIONS[change.__name__] = change
    return change


def with_kernel(program, old, new):
    return replace(program, kernels=_replaced(program.kernels, old, new))


def _replaced(kernels, old, new):
    return tuple(new if k is old else _inside(k, old, new) for k in kernels)


def _inside(kernel, old, new):
    if isinstance(kernel, LoopKernel):
        test, body = (_replaced(part, old, new) for part in kernel.parts)
        return replace(kernel, test=test, body=body)
    if isinstance(kernel, BranchKernel):
        yes, no = (_replaced(part, old, new) for part in kernel.parts)
        return replace(kernel, yes=yes, no=no)
    if isinstance(kernel, TogetherKernel):
        return replace(kernel, chains=tuple(_replaced(c, old, new) for c in kernel.chains))
    return kernel


def pick(rng, items):
    items = list(items)
    return items[rng.integers(len(items))] if items else None


def changed_at(items, place, item):
    return (*items[:place], item, *items[place + 1 :])


def broken(program, name, seed):
    """Return a program with one broken rule and the kernel to blame, if it has such a one."""
    return MUTATIONS[name](program, np.random.default_rng(seed)) or None
