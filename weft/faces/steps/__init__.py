"""Whole steps of programs that know nothing of Weft, captured: `weft run --jit`.

A script and its neighbours enter as source (`loading`); loops that go backward are rewritten so
that stretches of their statements can run in another way (`rewriting`, by `names`, `scopes`,
`liveness` and `statements`); wf.jit captures these as far as it can (`stretches`, `running`).
"""

from __future__ import annotations

from .loading import SteppedScript

__all__ = ["SteppedScript"]
