"""Writes into temporaries raise where they would be lost, and nowhere else."""

import copy
import dataclasses
import operator
import pickle

import numpy as np
import pytest

import weft as wf
from weft.core.errors import LostWriteError
from weft.core.snapshot import Snapshot

LOST = {
    "x[0][1] = 5": "x[0, 1] = ...",
    "x[0][1] += 5": "x[0, 1] = ...",
    "x[0][1:2] = 5": "x[0, 1:2] = ...",
    "x[i][j] = 5": "x[i, j] = ...",
    "x[0].fill_(1)": "x[0] = ...",
    "x[0].zero_()": "x[0] = ...",
    "x[i:j].fill_(1)": "x[i:j] = ...",
    "x[0].fill_(1 if i else 2)": "x[0] = ...",
    "x[0].fill_(value=1)": "x[0] = ...",
    "x[1].add_(x[2])": "x[1] = ...",
    "x[0].zero_().add_(1)": "Give it a name",
    "x[0][1].fill_(2)": "Give it a name",
    "x.detach().zero_()": "Write into x itself, inside `with wf.no_grad():`",
    "x.T[0] = 1": "Give it a name",
    "x.T.fill_(0)": "Give it a name",
    "x.view(-1)[0] = 5": "Give it a name",
    "x.reshape(9)[:3].zero_()": "Give it a name",
    "x.chunk(3)[0].zero_()": "Give it a name",
    "box.weight[0].mul_(2)": "box.weight[0] = ...",
    "box.many['a'][0].zero_()": "box.many['a'][0] = ...",
    "many[0][0] = [1, 2, 3]\nmany[1][0][1] = 5": "many[1][0, 1] = ...",
    "wf.nn.init.zeros_(x[0])": "x[0] = ...",
    "zeros_(x[0])": "x[0] = ...",
}

KEPT = """
x[0] = 5
x[0, 1] = 5
x[0] += 1
x[0, 1] += 1
x += 1
x.fill_(1)
x.zero_().add_(1)
x.cpu().contiguous().zero_()
x.to(x.dtype).zero_()
y = x[0].fill_(1)
print(x[0].fill_(1))
many[0][1] = 5
many[i].fill_(3)
box.weight[0] = 1
box.weight.fill_(1)
box.many["a"].zero_()
box.many["a"][0] = 1
zeros_(x)
wf.nn.init.zeros_(box.weight)
make()[0] = 1
make().fill_(1)
lazy.weight.fill_(1)
lazy.weight[0] = 1
lazy[0].fill_(1)
operator.setitem(x[0], 1, 5)
[row.fill_(1) for row in x]
(lambda: x[0].fill_(1))()
grown = [x[0].fill_(1)]
assert x[0].fill_(1) is not None
""".strip().splitlines()

LOOP = """
total = 0.0
for row in x:
    row += 1
    row[0] = 5
    row.mul_(2)
    total += float(row.sum())
assert total == 3 * (10 + 4 + 4)
"""


@dataclasses.dataclass
class Box:
    weight: wf.Tensor
    many: dict


class Lazy:
    """Makes its tensor when it is asked, and keeps it: looking it up again would be wrong."""

    def __init__(self, tensor):
        self._tensor, self.asked = tensor, 0

    @property
    def weight(self):
        self.asked += 1
        return self._tensor

    def __getitem__(self, index):
        return self.weight


def variables():
    x = wf.ones(3, 3)
    box = Box(wf.ones(3, 3), {"a": wf.ones(3, 3)})
    names = {"x": x, "i": 0, "j": 1, "box": box, "many": [wf.ones(3, 3), wf.ones(3, 3)]}
    return {
        **names,
        "wf": wf,
        "operator": operator,
        "zeros_": wf.nn.init.zeros_,
        "lazy": Lazy(x),
        "make": lambda: x,
    }


def run_in_function(source, names):
    """Run source with local variables, as in a user's function."""
    body = "\n".join(f"    {line}" for line in source.splitlines())
    scope = {}
    exec(f"def f({', '.join(names)}):\n{body}", scope)
    scope["f"](**names)


@pytest.mark.parametrize("how", ["locals", "globals"])
@pytest.mark.parametrize("source", LOST)
def test_a_lost_write_raises_and_names_what_works(source, how):
    names = variables()
    with pytest.raises(LostWriteError) as error:
        exec(source, names) if how == "globals" else run_in_function(source, names)
    assert LOST[source] in str(error.value)
    assert "would be lost" in str(error.value)
    assert names["x"].tolist() == wf.ones(3, 3).tolist()


@pytest.mark.parametrize("source", [*KEPT, LOOP])
def test_other_writes_go_through(source, capsys):
    exec(source, variables())
    run_in_function(source, variables())


def test_a_property_is_not_asked_twice():
    names = variables()
    run_in_function("lazy.weight[0] = 7\nlazy[1].fill_(2)", names)
    assert names["lazy"].asked == 2


def test_a_prompt_shows_no_lost_write_as_if_it_were_done():
    with pytest.raises(LostWriteError):
        exec(compile("x[0].fill_(3)", "<stdin>", "single"), variables())


def test_writes_inside_branches_loops_and_handlers():
    source = """
for k in range(2):
    try:
        if k:
            x[k].fill_(k or (2 if i else 3))
    finally:
        pass
"""
    with pytest.raises(LostWriteError, match=r"x\[k\] = "):
        run_in_function(source, variables())


def test_a_method_of_the_user_may_return_what_it_holds():
    class Held(wf.nn.Parameter):
        def part(self):
            return other

    other = wf.zeros(2)
    held = Held(wf.ones(2))
    held.part().fill_(3)
    assert other.tolist() == [3.0, 3.0]


def test_symbols_are_temporaries_too():
    with wf.Graph():
        x = wf.placeholder((3, 3), wf.float32)
        with pytest.raises(LostWriteError, match=r"x\[0, 1\] = "):
            x[0][1] = 5
        x[0, 1] = 5


# -- snapshots -----------------------------------------------------------------------------------

WRITES = ["s.zero_()", "s.copy_(v)", "s[0] = 1", "s += 1", "s.mul_(2)"]


def states():
    layer = wf.nn.Linear(2, 2)
    optimizer = wf.optim.Adam(layer.parameters())
    layer(wf.ones(1, 2)).sum().backward()
    optimizer.step()
    return {
        "module": layer.state_dict()["weight"],
        "optimizer": next(iter(optimizer.state_dict()["state"].values()))["exp_avg"],
    }


@pytest.mark.parametrize("owner", ["module", "optimizer"])
@pytest.mark.parametrize("source", WRITES)
def test_entries_of_a_state_are_read_only(owner, source):
    entry = states()[owner]
    before = entry.tolist()
    with pytest.raises(LostWriteError, match=r"\.clone\(\).*load_state_dict"):
        exec(source, {"s": entry, "v": wf.ones(2, 2)})
    assert entry.tolist() == before


def test_copies_of_a_snapshot_can_be_written():
    entry = states()["module"]
    copies = [entry.clone(), copy.copy(entry), copy.deepcopy(entry), entry + 0, entry.detach()]
    copies.append(pickle.loads(pickle.dumps(entry)))
    for made in copies:
        assert isinstance(entry, Snapshot)
        assert type(made) is wf.Tensor
        made.zero_()
        assert not np.any(made.numpy())


def test_a_changed_copy_can_be_loaded():
    layer = wf.nn.Linear(2, 2)
    state = {name: value.clone().fill_(3.0) for name, value in layer.state_dict().items()}
    layer.load_state_dict(state)
    assert layer.weight.tolist() == [[3.0, 3.0], [3.0, 3.0]]


def test_a_snapshot_keeps_the_value_of_its_moment():
    layer = wf.nn.Linear(2, 2)
    state = layer.state_dict()
    before = state["weight"].tolist()
    with wf.no_grad():
        layer.weight.zero_()
    assert state["weight"].tolist() == before
