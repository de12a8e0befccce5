"""Saved graphs come back the same; damaged and hostile files are refused with a reason."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft as wf
from tests.io.rawfile import raw
from tests.programs.graphs import control_flow, mlp_training, programs, registry_graphs
from weft.core.errors import (
    ArgumentError,
    ArgumentTypeError,
    GraphError,
    WeftError,
)
from weft.core.rng import Generator, default_generator, manual_seed
from weft.graph.graph import Graph
from weft.graph.identity.canonical import canonical_hash
from weft.graph.serial.decode import decode_graph
from weft.graph.serial.encode import encode_graph
from weft.graph.text.printer import graph_text
from weft.graph.verify import verify
from weft.io.graphs import load_graph, save_graph
from weft.io.tensorfile import read_tensors, write_tensors

PROGRAMS = dict(programs())


def decoded(graph: Graph, **options: Any) -> Graph:
    """Return a graph taken apart and put together, by way of JSON."""
    data, arrays = encode_graph(graph)
    return decode_graph(json.loads(json.dumps(data)), copied(arrays), **options)


def copied(arrays):
    return {name: np.array(array) for name, array in arrays.items()}


# -- good files ------------------------------------------------------------------------------------


def test_a_file_from_before_an_option_means_what_it_meant():
    with wf.Graph() as graph:
        table, index = wf.placeholder((4, 2)), wf.placeholder((3,), wf.int64)
        wf.take(table, index, axis=0)
    data, arrays = encode_graph(graph)
    older = json.loads(json.dumps(data))
    (node,) = (n for n in older["graph"]["nodes"] if n["op"] == "take")
    assert node["attrs"].pop() is False  # sparse
    assert graph_text(decode_graph(older, copied(arrays))) == graph_text(graph)
    node["attrs"].pop()
    with pytest.raises(GraphError, match="take has 2 attributes"):
        decode_graph(older, copied(arrays))


@pytest.mark.parametrize("name", PROGRAMS)
def test_round_trip(name, tmp_path):
    graph = PROGRAMS[name]
    path = tmp_path / "graph.weft"
    save_graph(graph, path)
    again = load_graph(path)
    verify(again)
    assert canonical_hash(again) == canonical_hash(graph)
    assert graph_text(again) == graph_text(graph)
    assert again.name == graph.name


def test_every_operator():
    for graphs in registry_graphs().values():
        for graph in graphs:
            again = decoded(graph)
            assert canonical_hash(again) == canonical_hash(graph)


def test_methods_of_graphs(tmp_path):
    graph = control_flow()
    graph.save(tmp_path / "graph.weft")
    assert Graph.load(tmp_path / "graph.weft").hash() == graph.hash()


def test_optimised_graph(tmp_path):
    graph = mlp_training().optimize()
    save_graph(graph, tmp_path / "graph.weft")
    assert canonical_hash(load_graph(tmp_path / "graph.weft")) == canonical_hash(graph)


def former_file(**changes: Any) -> Any:
    """Return a graph as former versions wrote it: a node that stands for several."""
    body, outer = Graph("fused"), Graph("outer")
    with body:
        x = wf.placeholder(("n",), wf.float32, name="x0")
        y = wf.tanh(x * x)
    body.outputs = [y.value]
    with outer:
        wf.sum(wf.exp(wf.placeholder(("n",), wf.float32, name="x")), 0).name = "total"
        wf.placeholder((), wf.float32, name="mul")  # the name that a node inside has
    data, arrays = encode_graph(outer)
    inner = {"$": "graph", **encode_graph(body)[0]["graph"]}
    data["graph"]["nodes"][1] |= {"op": "fused", "attrs": [inner], **changes}
    return data, arrays


def test_groups_of_former_files_are_taken_apart():
    data, arrays = former_file()
    graph = decode_graph(data, copied(arrays))
    assert [node.op.name for node in graph] == ["placeholder", "mul", "tanh", "sum", "placeholder"]
    x = np.linspace(-1, 1, 5, dtype=np.float32)
    (found,) = wf.Session(graph).run(["total"], {"x": x})
    np.testing.assert_allclose(found, np.tanh(x * x).sum(), rtol=1e-6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"inputs": []}, "takes 1 values. Received: 0"),
        ({"inputs": [7]}, "not made before it is used"),
        ({"attrs": []}, "has one attribute, a graph"),
        ({"attrs": [3]}, "has one attribute, a graph"),
    ],
)
def test_bad_groups_are_refused(changes, message):
    with pytest.raises(GraphError, match=message):
        decode_graph(*former_file(**changes))


def test_loaded_graph_gives_the_same_results():
    graph = control_flow()
    feeds = {"x": np.ones((2, 3), np.float32), "n": 3}
    manual_seed(1)
    expected = wf.Session(graph).run(["total", "assign"], feeds)
    manual_seed(1)
    wf.Session(graph)
    found = wf.Session(decoded(control_flow())).run(["total", "assign"], feeds)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])


def test_loaded_step_trains_on_its_own_copy():
    graph = mlp_training()
    again = decoded(graph)
    updates = [node.name for node in again if node.op.name == "assign"]
    before = [state.read().copy() for state in graph.states()]
    feeds = {"x": np.ones((5, 4), np.float32), "y": np.zeros(5, np.int64)}
    wf.Session(again).run(updates, feeds)
    for state, value in zip(graph.states(), before, strict=True):
        if not isinstance(state.owner, Generator):
            np.testing.assert_array_equal(state.read(), value)
    changed = [s for s in again.states() if s.name.endswith("weight")]
    olds = {s.name: s.read() for s in graph.states()}
    assert changed
    assert all(np.any(s.read() != olds[s.name]) for s in changed)


def test_loaded_step_trains_as_the_one_that_was_saved(tmp_path):
    weight = wf.nn.Parameter(wf.ones(3, 2))
    optimizer = wf.optim.SGD([weight], lr=0.1, momentum=0.9)
    with Graph() as graph:
        loss = (wf.placeholder((None, 3), wf.float32, name="x") @ weight).sum()
        update = optimizer.minimize(loss)
    save_graph(graph, tmp_path / "graph.weft")
    again = load_graph(tmp_path / "graph.weft")  # its states are views of what was read
    updates = [node.name for node in again if node.op.name == "assign"]
    (kept,) = [state for state in again.states() if state.name == "parameter"]
    session, session_again = wf.Session(graph), wf.Session(again, compiled=True)
    for _ in range(3):
        session.run(update, {"x": np.ones((4, 3), np.float32)})
        session_again.run(updates, {"x": np.ones((4, 3), np.float32)})
        np.testing.assert_allclose(kept.read(), weight.numpy(), rtol=1e-6)


def test_states_keep_values_and_flags():
    w, v = wf.tensor([1.0, 2.0]).requires_grad_(), wf.tensor([3, 4])
    with Graph() as graph:
        w * v
    first, second = sorted(decoded(graph).states(), key=lambda state: state.name)
    assert (first.owner.tolist(), first.owner.requires_grad) == ([1.0, 2.0], True)
    assert (second.owner.tolist(), second.owner.requires_grad) == ([3, 4], False)
    assert first.owner is not w


def test_states_of_an_existing_model():
    w, v = wf.tensor([1.0, 2.0]), wf.tensor([7.0, 7.0])
    with Graph() as graph:
        (w * 2.0).name = "y"
    again = decoded(graph, states={"tensor": v})
    assert wf.Session(again).run("y").tolist() == [14.0, 14.0]
    with pytest.raises(ArgumentError, match=r"no state named 'weight'; it has \['tensor'\]"):
        decoded(graph, states={"weight": v})
    with pytest.raises(ArgumentError, match=r"must be float32\[2\]. Received: int64\[1\]"):
        decoded(graph, states={"tensor": wf.tensor([1])})
    with pytest.raises(ArgumentTypeError, match="must be a tensor"):
        decoded(graph, states={"tensor": 3.0})


def test_generators():
    own = Generator(5)
    own.reserve(3)
    with Graph() as graph:
        wf.rand(2)
        wf.rand(2, generator=own)
    first, second = (state.owner for state in decoded(graph).states())
    assert first is default_generator
    assert second is not own
    assert second.position() == own.position()


def test_sites_and_scopes_survive():
    with Graph() as graph, wf.name_scope("a/b"):
        x = wf.placeholder((2,), wf.float32, name="x")
        wf.exp(x)
    node = decoded(graph).nodes[-1]
    assert node.scope == ("a", "b")
    assert node.where.startswith("test_save.py:")


def test_bfloat16(tmp_path):
    pytest.importorskip("ml_dtypes")
    w = wf.tensor(np.array([0.1, 2.0])).to(wf.bfloat16)
    with Graph() as graph:
        w * 2.0
    save_graph(graph, tmp_path / "g.weft")
    assert load_graph(tmp_path / "g.weft").states()[0].owner.dtype == wf.bfloat16


def test_file_is_safetensors_without_code(tmp_path):
    save_graph(control_flow(), tmp_path / "g.weft")
    content = (tmp_path / "g.weft").read_bytes()
    assert content[8:9] == b"{"
    assert b"pickle" not in content
    names = read_tensors(tmp_path / "g.weft").keys()
    assert {name.split("/")[0] for name in names} <= {"graph.json", "state", "constant"}


def test_failed_save_keeps_the_old_file(tmp_path):
    path = tmp_path / "g.weft"
    path.write_text("old")
    with pytest.raises(ArgumentTypeError, match=r"expected a wf\.Graph"):
        save_graph("graph", path)
    assert path.read_text() == "old"
    with pytest.raises(OSError, match="directory"):
        save_graph(Graph(), tmp_path)
    with pytest.raises(WeftError, match="pickle"):
        save_graph(Graph(), tmp_path / "g.pkl")
    with pytest.raises(ArgumentTypeError, match="expected a path"):
        save_graph(Graph(), 3)


def test_bad_arguments_of_load(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_graph(tmp_path / "missing.weft")
    with pytest.raises(ArgumentTypeError, match="expected a path"):
        load_graph(None)
    with pytest.raises(ArgumentTypeError, match="states must be a dictionary"):
        load_graph(tmp_path / "x", states=[wf.ones(2)])


# -- files that are no graphs ----------------------------------------------------------------------


def write(path: Path, data: Any, arrays: Any = None, **text: str) -> Path:
    content = data if isinstance(data, bytes) else json.dumps(data).encode()
    stored = {"graph.json": np.frombuffer(content, np.uint8), **(arrays or {})}
    write_tensors(path, stored, {"format": "weft-graph", "version": "1", **text})
    return path


def test_other_files(tmp_path):
    path = tmp_path / "weights.safetensors"
    wf.save(path, {"w": wf.ones(2)})
    with pytest.raises(GraphError, match="is not a graph that save_graph wrote"):
        load_graph(path)
    path.write_bytes(b"\x80\x04pickle")
    with pytest.raises(WeftError, match="pickle"):
        load_graph(path)
    path.write_bytes(raw(b"[" * 10_000))
    with pytest.raises(WeftError):
        load_graph(path)


def test_other_version(tmp_path):
    data, arrays = encode_graph(Graph())
    with pytest.raises(GraphError, match=r"has version '2'.*reads version 1"):
        load_graph(write(tmp_path / "g", data, arrays, version="2"))


def small() -> tuple[Any, Any]:
    w = wf.tensor([1.0, 2.0])
    with Graph() as graph:
        x = wf.placeholder(("n", 2), wf.float32, name="x")
        y = wf.sum(x * w, axis=1)
        y.name = "y"
        wf.split(x, 1, axis=1)
        w.assign(w + wf.tensor(np.arange(2, dtype=np.float32)))
        wf.scan(lambda h, r: (h + r, h), w, x)
    data, arrays = encode_graph(graph)
    return json.loads(json.dumps(data)), {**copied(arrays), "i": np.arange(3)}


def nested(levels: int) -> list:
    data: list = []
    for _ in range(levels):
        data = [data]
    return data


def huge_unbind(data):
    """Let a node claim as many results as an input claims to have rows."""
    data["graph"]["nodes"][0]["types"] = [{"dtype": "float32", "shape": [2**40, 2]}]
    data["graph"]["nodes"][0]["attrs"] = [
        {"$": "type", "type": data["graph"]["nodes"][0]["types"][0]}
    ]
    split = nodes(data, "split")
    split.update(op="unbind", attrs=[0])


def nodes(data: Any, op: str) -> Any:
    return next(node for node in data["graph"]["nodes"] if node["op"] == op)


def explosion(data):
    """Let the product of the sizes of a shape have 3**40 terms."""
    size = {"$": "size", "terms": [[1, "a"], [1, "b"], [1, "c"]]}
    nodes(data, "placeholder")["types"][0]["shape"] = [size] * 40


def hidden_explosion(data):
    quotient = ["floordiv", {"$": "size", "terms": [[2, "a"], [2, "b"]]}, 2]
    size = {"$": "size", "terms": [[1] + [quotient] * 60]}
    nodes(data, "placeholder")["types"][0]["shape"] = [size]


def at(op: str, field: str, value: Any):
    """Return a change of one field of a node."""
    return lambda data: nodes(data, op).update({field: value})


def top(field: str, value: Any):
    return lambda data: data["graph"].update({field: value})


def state(field: str, value: Any):
    return lambda data: data["states"][0].update({field: value})


def integers_with_gradients(data):
    data["states"].append({**data["states"][0], "name": "i", "value": "i", "requires_grad": True})


def body_of_scan(field: str, value: Any):
    return lambda data: nodes(data, "scan")["attrs"][0].update({field: value})


N = {"$": "size", "terms": [[1, "n"]]}
MALFORMED = {
    "no nodes": (lambda data: data["graph"].pop("nodes"), "'nodes' is missing"),
    "no graph": (lambda data: data.pop("graph"), "'graph' is missing"),
    "nodes no list": (top("nodes", {}), "'nodes' must be of type list"),
    "node no object": (lambda data: data["graph"]["nodes"].append(3), "expected an object"),
    "unknown operator": (at("mul", "op", "frobnicate"), "no operator named 'frobnicate'"),
    "composite": (at("mul", "op", "softmax"), "no operator|made of other operators"),
    "module path as operator": (at("mul", "op", "os.system"), "no operator named 'os.system'"),
    "dunder as operator": (at("mul", "op", "__class__"), "no operator"),
    "too few inputs": (at("mul", "inputs", [0]), "mul takes 2 values. Received: 1"),
    "value of the future": (at("mul", "inputs", [0, 99]), "value 99 is not made before"),
    "its own value": (at("mul", "inputs", [0, 2]), "value 2 is not made before"),
    "negative value": (at("mul", "inputs", [0, -1]), "value -1 is not made before"),
    "value no number": (at("mul", "inputs", [0, True]), "value True is not made before"),
    "missing operand": (at("mul", "inputs", [0, None]), "lacks its input|None"),
    "too many attributes": (at("mul", "attrs", [1]), "mul has 0 attributes. Received: 1"),
    "attribute not canonical": (at("sum", "attrs", [[-1], False, None]), "instead of"),
    "attribute out of range": (at("sum", "attrs", [[9], False, None]), "out of range"),
    "attribute of a wrong type": (at("sum", "attrs", ["x", {}, None]), "'\\$' is missing"),
    "unknown attribute kind": (at("sum", "attrs", [{"$": "code"}, 1, 2]), "unknown kind: 'code'"),
    "attribute nested": (at("sum", "attrs", [nested(50), False, None]), "nested too deeply"),
    "attribute nested much": (at("sum", "attrs", [nested(700), False, None]), "nested too deep"),
    "attribute a graph": (at("sum", "attrs", [{"$": "graph"}, 1, 2]), "'name' is missing"),
    "attribute a state": (
        at("sum", "attrs", [{"$": "state", "index": 0}, 1, 2]),
        "cannot have a State",
    ),
    "no such state": (at("state", "attrs", [{"$": "state", "index": 5}]), "no state number 5"),
    "state no state": (at("state", "attrs", [3]), "state refers to a int"),
    "placeholder no type": (at("placeholder", "attrs", [3]), "placeholder refers to a int"),
    "no such constant": (
        at("constant", "attrs", [{"$": "constant", "key": "x"}]),
        "lacks the array 'x'",
    ),
    "infinite number": (at("sum", "attrs", [[float("inf")], 1, 2]), "JSON"),
    "wrong shape": (
        at("mul", "types", [{"dtype": "float32", "shape": [7, 7]}]),
        r"makes float32\[7, 7\]",
    ),
    "wrong dtype": (at("sum", "types", [{"dtype": "int8", "shape": [N]}]), "makes int8"),
    "unknown dtype": (at("mul", "types", [{"dtype": "object", "shape": []}]), "object"),
    "too many results": (
        at("sum", "types", [{"dtype": "float32", "shape": []}] * 9),
        "sum makes 1 values. Received: types of 9",
    ),
    "no results": (at("state", "types", []), "state makes 1 values"),
    "negative size": (
        at("mul", "types", [{"dtype": "float32", "shape": [-1]}]),
        "-1 is not the size",
    ),
    "huge size": (at("mul", "types", [{"dtype": "float32", "shape": [2**70]}]), "is not the size"),
    "too many dimensions": (
        at("mul", "types", [{"dtype": "float32", "shape": [1] * 99}]),
        "99 dimensions",
    ),
    "size no number": (at("mul", "types", [{"dtype": "float32", "shape": ["n"]}]), "not a size"),
    "size of no terms": (
        at("mul", "types", [{"dtype": "float32", "shape": [{"$": "size", "terms": []}]}]),
        "empty",
    ),
    "size not in normal form": (
        at("mul", "types", [{"dtype": "float32", "shape": [{"terms": [[1, "n"], [1, "n"]]}]}]),
        "normal form",
    ),
    "size of a bad name": (
        at("mul", "types", [{"dtype": "float32", "shape": [{"terms": [[1, ""]]}]}]),
        "not part of a size",
    ),
    "explosion of sizes": (explosion, "too long expressions"),
    "hidden explosion": (hidden_explosion, "normal form"),
    "split into too many": (at("split", "attrs", [1, 1]), "split"),
    "claimed number of results": (huge_unbind, "unbind does not make"),
    "name taken": (at("mul", "name", "x"), "name of another node"),
    "name no text": (at("mul", "name", 3), "'name' must be of type str"),
    "unknown device": (at("mul", "device", "tpu:7"), "device must be"),
    "scope no names": (at("mul", "scope", [1]), "name scope"),
    "site no text": (at("mul", "site", []), "'site' must be of type str"),
    "output of another graph": (top("outputs", [999]), "value 999"),
    "inputs lacking": (top("inputs", []), "inputs are not its placeholders"),
    "named value lacking": (top("names", {"y": 999}), "value 999"),
    "two names": (top("names", {"mul": 0}), "taken"),
    "state of a wrong name": (state("name", None), "'name' must be of type str"),
    "state without value": (state("value", "state/none"), "lacks the array"),
    "state of an unknown kind": (state("kind", "socket"), "unknown kind: 'socket'"),
    "state no generator": (state("kind", "generator"), "not that of a random generator"),
    "integers with gradients": (integers_with_gradients, "of int64 cannot have gradients"),
    "two states of one name": (lambda data: data["states"].append(data["states"][0]), "two states"),
    "body unsound": (body_of_scan("outputs", []), "0 results that must give 1"),
    "body of other inputs": (body_of_scan("inputs", []), "inputs"),
    "body no graph": (at("scan", "attrs", [1, 1, 1, 2, False, False, []]), "lacks a body"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_graph_is_refused(name, tmp_path):
    change, message = MALFORMED[name]
    data, arrays = small()
    change(data)
    path = write(tmp_path / "bad.weft", data, arrays)
    with pytest.raises(WeftError, match=message) as caught:
        load_graph(path)
    assert isinstance(caught.value, (GraphError, ValueError))
    assert str(path) in str(caught.value)


def test_deep_control_flow_is_refused(tmp_path):
    data, arrays = small()
    scan = nodes(data, "scan")
    inner = scan["attrs"][0]
    inputs = [node for node in inner["nodes"] if node["op"] == "placeholder"]
    for _ in range(100):
        loop = {**scan, "inputs": [0, 1], "attrs": [inner, *scan["attrs"][1:]]}
        inner = {**inner, "nodes": [*inputs, loop]}
    scan["attrs"][0] = inner
    with pytest.raises(WeftError, match="nested"):
        load_graph(write(tmp_path / "deep.weft", data, arrays))


def test_too_long_sizes_are_not_saved():
    with Graph() as graph:
        sizes = [wf.placeholder((f"a{i}",), wf.float32).shape[0] for i in range(9)]
        other = [wf.placeholder((f"b{i}",), wf.float32).shape[0] for i in range(9)]
        wf.zeros(()).broadcast_to(tuple(a + b for a, b in zip(sizes, other, strict=True)))
    with pytest.raises(GraphError, match="too long expressions"):
        encode_graph(graph)


# -- mutated files ---------------------------------------------------------------------------------

NASTY = [
    *(None, True, False, -1, 0, 1, 2, 7, 2**31, 2**63, 2**64, -(2**63), 1.5, 1e308, "", "x", "n"),
    *([], {}, [[]], {"$": "graph"}, {"$": "size", "terms": [[1, "zz"]]}, {"$": "ellipsis"}),
    *({"$": "state", "index": 0}, {"$": "dtype", "name": "float64"}, nested(30), [0] * 70),
    *("add", "split", "scan", "unbind", "float64", "bool", "constant/0", "cpu"),
]


def spots(data: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Return every place in JSON data: a container, and the key or index in it."""
    items = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in items:
        found.append((data, key))
        if isinstance(value, (dict, list)):
            spots(value, found)
    return found


def mutate_json(content: Any, rng: random.Random) -> Any:
    data = copy.deepcopy(content)
    for _ in range(rng.randint(1, 3)):
        places = spots(data, [])
        if not places:
            break
        container, key = rng.choice(places)
        other, other_key = rng.choice(places)
        kind = rng.randrange(4)
        if kind == 0:
            del container[key]
        elif kind == 1:
            container[key] = copy.deepcopy(rng.choice(NASTY))
        elif kind == 2:
            container[key] = copy.deepcopy(other[other_key])
        elif isinstance(container[key], int):
            container[key] += rng.choice((-1, 1))
    return data


def mutate_bytes(content: bytes, rng: random.Random) -> bytes:
    changed = bytearray(content)
    kind = rng.randrange(3)
    if kind == 0:
        return content[: rng.randrange(len(content))]
    for _ in range(rng.randint(1, 8)):
        place = rng.randrange(len(changed))
        if kind == 1:
            changed[place] ^= 1 << rng.randrange(8)
        else:
            changed[place : place + rng.randrange(4)] = rng.randbytes(rng.randrange(4))
    return bytes(changed)


def load_or_refuse(path: Path) -> bool:
    """Load a file: it must be refused by Weft or the system, or give a valid graph."""
    try:
        graph = load_graph(path)
    except (WeftError, OSError):
        return False
    verify(graph)
    assert len(canonical_hash(graph)) == 64
    assert graph_text(graph)
    return True


def fuzz(folder: Path, count: int, seed: int) -> None:
    rng = random.Random(seed)
    bases = [(PROGRAMS[name], folder / name) for name in ("control", "mlp", "constants")]
    for graph, path in bases:
        save_graph(graph, path)
    contents = [(encode_graph(graph), path.read_bytes()) for graph, path in bases]
    operators = [graph for graphs in registry_graphs().values() for graph in graphs]
    accepted = 0
    for i in range(count):
        (data, arrays), content = rng.choice(contents)
        path = folder / "mutated.weft"
        if i % 2:
            if rng.random() < 0.7:
                data, arrays = encode_graph(rng.choice(operators))
            write(path, mutate_json(data, rng), {k: np.asarray(a) for k, a in arrays.items()})
        else:
            path.write_bytes(mutate_bytes(content, rng))
        accepted += load_or_refuse(path)
    assert accepted < count


def test_mutated_files(tmp_path):
    fuzz(tmp_path, 200, 0)


@pytest.mark.long
def test_many_mutated_files(tmp_path):
    fuzz(tmp_path, 2000, 1)


def test_every_truncation_of_the_json(tmp_path):
    data, arrays = small()
    text = json.dumps(data).encode()
    for length in range(0, len(text), 97):
        with pytest.raises(WeftError):
            load_graph(write(tmp_path / "cut.weft", text[:length], arrays))


def test_dtype_of_the_nodes(tmp_path):
    path = tmp_path / "g.weft"
    text = {"format": "weft-graph", "version": "1"}
    write_tensors(path, {"graph.json": np.zeros((2, 2), np.float32)}, text)
    with pytest.raises(GraphError, match="stored as float32"):
        load_graph(path)
