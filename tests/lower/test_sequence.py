"""Places in a sequence stay in its order, however often things move ahead of others."""

from __future__ import annotations

import random

from weft.lower import sequence
from weft.lower.sequence import Order, Sequenced


def test_places_follow_the_order(monkeypatch):
    monkeypatch.setattr(sequence, "GAP", 8)  # so that places are soon counted anew
    rng = random.Random(0)
    order, expected = Order(), []
    for _ in range(300):
        item = Sequenced()
        order.append(item)
        expected.append(item)
        target = rng.choice(expected)
        behind = expected[expected.index(target) + 1 :]
        moved = rng.sample(behind, min(len(behind), rng.randrange(4)))
        order.move_before(target, moved)
        ahead = [x for x in expected if x in moved]
        expected = [x for x in expected if x not in moved]
        at = expected.index(target)
        expected[at:at] = ahead
        if len(expected) > 20:
            gone = rng.choice(expected)
            order.remove(gone)
            expected.remove(gone)
        places = [x.place for x in expected]
        assert places == sorted(set(places))
