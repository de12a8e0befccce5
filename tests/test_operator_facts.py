"""Facts live on operators: nobody else knows operators by their names, and the facts are true.

A table of operator names outside `weft/ops` repeats what operators should say of themselves, and
goes wrong when one is added. So literals that hold two or more names of operators are refused, and
so is looking at `op.name` in order to decide something. Layers for users are excepted from the
first rule only: there "mean" and "sum" are options.
"""

from __future__ import annotations

import ast
import pickle
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from itertools import permutations
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

import weft as wf
from tests.ops.conformance import Arguments, as_array, cases, outputs_of, record_call
from weft.core.facts import operations
from weft.core.namespaces import namespaces
from weft.core.op import composite_methods, find, find_op, load_all, registry
from weft.lower.storage import View, contiguous_strides
from weft.ops import LATER, LATER_METHODS

ROOT = Path(__file__).resolve().parent.parent
load_all()

MAY_TEST_NAMES = {
    "weft/ops/*": "operators are declared here",
    "weft/graph/serial/*": "saved graphs name operators",
}
MAY_HOLD_NAMES = MAY_TEST_NAMES | {
    "weft/capture/number_arithmetic.py": "Python's operators on numbers",
    "weft/core/dim*": "functions of sizes, which are called like some operators",
    "weft/core/scalar/*": "scalar functions, each with a record of its own",
    "weft/core/special/*": "functions of arrays, by which operators are computed",
    "weft/backends/*": "back ends see scalar functions, never operators",
    "weft/eager*": "which scalar functions round",
    "weft/lower/kernels/base.py": "ways of combining elements",
    "weft/lower/kernels/scatter.py": "the same",
    "weft/lower/text.py": "scalar functions, as kernel programs print them",
    "weft/graph/text/expressions.py": "Python's min and max",
    "weft/nn/*": "options and registries of users, as in the lines below",
    "weft/optim/*": "options",
    "weft/data/*": "options",
    "weft/io/*": "options",
    "weft/train/*": "options",
    "weft/cli/*": "options",
    "weft/caffe/*": "a face: the names of another framework",
    "weft/chainer/*": "a face: the names of another framework",
    "weft/keras/*": "a face: the names of another framework",
    "weft/tf1/*": "a face: the names of another framework",
    "weft/torch/*": "a face: the names of another framework",
    "weft/torchvision/*": "a face: the names of another framework",
}
ASKING = {"startswith", "endswith", "removeprefix", "removesuffix"}


# -- the check -------------------------------------------------------------------------------------


def violations(root: Path) -> list[str]:
    """Return `file:line: rule` for each place under `root` that knows operators by name."""
    return [
        f"{path.relative_to(root).as_posix()}:{line}: {rule}"
        for path in sorted((root / "weft").rglob("*.py"))
        for line, rule in dict.fromkeys(_of_file(path, path.relative_to(root).as_posix()))
    ]


def _of_file(path: Path, name: str) -> Iterator[tuple[int, str]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if not _is_excepted(name, MAY_HOLD_NAMES):
        yield from _tables(tree)
    if not _is_excepted(name, MAY_TEST_NAMES):
        yield from _tests_of_names(tree)


def _is_excepted(name: str, table: dict[str, str]) -> bool:
    return any(fnmatch(name, pattern) for pattern in table)


def _tables(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            held = node.elts
        elif isinstance(node, ast.Dict):
            held = [*node.keys, *node.values]
        else:
            continue
        texts = {x.value for x in held if isinstance(x, ast.Constant) and isinstance(x.value, str)}
        found = sorted(texts & registry.keys())
        if len(found) > 1:
            yield node.lineno, f"a table of operator names: {', '.join(found[:5])}"


def _tests_of_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for scope in (tree, *_functions(tree)):
        known = {
            target.id
            for node in ast.walk(scope)
            if isinstance(node, ast.Assign) and _is_name_of_op(node.value, frozenset())
            for target in node.targets
            if isinstance(target, ast.Name) and not isinstance(scope, ast.Module)
        }
        for node in ast.walk(scope):
            if any(_is_name_of_op(x, known) for x in _decided_by(node)):
                yield node.lineno, "decides by the name of an operator: ask it for a fact"


def _functions(tree: ast.AST) -> list[ast.AST]:
    return [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


def _decided_by(node: ast.AST) -> list[ast.AST]:
    """Return the expressions by whose values a comparison, a look-up or a match decides."""
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.Subscript):
        return [node.slice]
    if isinstance(node, ast.Match):
        return [node.subject]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        asked = [node.func.value] if node.func.attr in ASKING else []
        return node.args[:1] if node.func.attr == "get" else asked
    return []


def _is_name_of_op(node: ast.AST, known: frozenset[str] | set[str]) -> bool:
    """Tell whether an expression is `op.name`, `x.op.name` or a variable that holds it."""
    if isinstance(node, ast.Name):
        return node.id in known
    if not isinstance(node, ast.Attribute) or node.attr != "name":
        return False
    holder = node.value
    return getattr(holder, "attr", getattr(holder, "id", None)) == "op"


def test_nobody_knows_operators_by_name():
    found = violations(ROOT)
    assert not found, "\n".join(["a fact of an operator belongs on the operator:", *found])


def check(root: Path, source: str, name: str = "passes/new.py") -> list[str]:
    path = root / "weft" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(source))
    return violations(root)


@pytest.mark.parametrize(
    "source",
    [
        'CHEAP = ("add", "mul")',
        'CHEAP = frozenset({"add", "neg", "copy"})',
        'COST = {"matmul": 3, "conv": 4}',
        'COST = {"+": "add", "-": "sub"}',
        'CHEAP = frozenset(map(find_op, ["add", "neg"]))',
        'def f(n):\n    return n in ("add", "mul")',
    ],
)
def test_a_table_is_caught(tmp_path, source):
    (found,) = check(tmp_path, source)
    assert "a table of operator names" in found


@pytest.mark.parametrize(
    "test",
    [
        'node.op.name == "add"',
        "op.name in CHEAP",
        '"add" != node.op.name',
        "RULES[node.op.name]",
        "RULES.get(op.name)",
        'node.op.name.startswith("conv")',
    ],
)
@pytest.mark.parametrize("layer", ["passes", "nn", "backends/cpu", "core"])
def test_looking_at_a_name_is_caught(tmp_path, test, layer):
    (found,) = check(tmp_path, f"def f(node, op):\n    return {test}", f"{layer}/new.py")[:1]
    assert found.startswith(f"weft/{layer}/new.py:2: decides by the name")


def test_a_name_in_a_variable_is_caught(tmp_path):
    assert check(tmp_path, 'def f(node):\n    name = node.op.name\n    return name == "add"')


def test_matching_a_name_is_caught(tmp_path):
    source = """
        def f(node):
            match node.op.name:
                case "add":
                    return 1
    """
    assert check(tmp_path, source)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ('NAMES = ("add",)', "passes/new.py"),
        ('NAMES = ("add", "spam")', "passes/new.py"),
        ('raise TypeError(f"{op.name} of {node.op.name}")', "passes/new.py"),
        ('NAMES = ("mean", "sum", "none")', "nn/loss.py"),
        ('NAMES = ("add", "mul")', "ops/elementwise/new.py"),
        ("known = TABLE[op.name]", "graph/serial/decode.py"),
        ("found = node.op is add and node.op.laws", "passes/new.py"),
        ('same = node.name == "x" and dtype.name in ("int8", "int16")', "passes/new.py"),
    ],
)
def test_what_is_allowed_passes(tmp_path, source, name):
    assert check(tmp_path, source, name) == []


# -- the facts are true ----------------------------------------------------------------------------


def stating(fact: str) -> list[str]:
    return [name for name, op in registry.items() if getattr(op, fact)]


SPECIAL = np.array([0.0, -0.0, 1.5, -2.5, 3.0, np.inf, -np.inf, np.nan, 1e-310])
GRIDS = {
    "float": (SPECIAL, SPECIAL),
    "integers": (np.array([-128, -1, 0, 1, 3, 127], np.int8),) * 2,
    "truth": (np.array([False, True]),) * 2,
}


def operand_grids(name: str) -> list[tuple[np.ndarray, np.ndarray]]:
    of_bits = name.startswith("bitwise")
    return [GRIDS[kind] for kind in (("integers", "truth") if of_bits else GRIDS)]


def compute(name: str, *arrays: np.ndarray) -> np.ndarray:
    attrs = {"clip_to": (-1, 2), "hardtanh": (-1.0, 1.0)}.get(name, ())
    with np.errstate(all="ignore"):
        return np.asarray(find_op(name).kernel(*arrays, *attrs))


def defined(name: str, *arrays: np.ndarray) -> bool:
    try:
        find_op(name)(
            *map(wf.tensor, arrays), **({"low": -1, "high": 2} if name == "clip_to" else {})
        )
    except TypeError:
        return False
    return True


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Tell whether arrays are the same but for the payloads and signs of NaN."""
    if a.dtype.kind == "f" and a.dtype == b.dtype:
        a, b = (np.where(np.isnan(x), np.nan, x).view(f"u{x.itemsize}") for x in (a, b))
    return a.dtype == b.dtype and bool((a == b).all())


LAWS = [(name, law) for name, op in registry.items() for law in op.laws if op.kind == "elementwise"]


@pytest.mark.parametrize(("name", "law"), LAWS)
def test_laws_hold_to_the_bit(name, law):
    tried = 0
    for x, y in operand_grids(name):
        a, b = np.repeat(x, len(y)), np.tile(y, len(x))
        operands = (a, b)[: len(find_op(name).inputs)]
        if not defined(name, *operands):
            continue
        tried += 1
        once = compute(name, *operands)
        if law == "commutative":
            assert same_bits(once, compute(name, b, a))
        elif law == "involution":
            assert once.dtype != a.dtype or same_bits(compute(name, once), a)
        elif law == "idempotent" and len(operands) == 1:
            assert same_bits(compute(name, once), once)
        elif law == "idempotent":
            own = compute(name, a, a)
            assert own.dtype != a.dtype or same_bits(own, a)
        else:
            c = np.resize(y[::-1], a.shape)
            left, right = compute(name, once, c), compute(name, a, compute(name, b, c))
            assert same_bits(left, right)
    assert tried


@pytest.mark.parametrize("name", [n for n in stating("laws") if registry[n].kind == "reduction"])
def test_associative_reductions_go_axis_by_axis(name):
    x = np.resize(SPECIAL, (3, 5, 7))
    rule = getattr(wf, name)
    for axes in permutations(range(3), 2):
        first, second = sorted(axes, reverse=True)
        by_steps = rule(rule(wf.tensor(x), axis=first), axis=second)
        assert same_bits(by_steps.numpy(), rule(wf.tensor(x), axis=axes).numpy())


SAMPLES = [case for case in cases() if case.op is not None]


def of_ops(names: list[str]) -> list[object]:
    return [pytest.param(case, id=case.id) for case in SAMPLES if case.op.name in names]


def call_of(case: object) -> tuple[list[np.ndarray], tuple[object, ...], list[np.ndarray]]:
    """Return the operands, canonical attributes and results of a sample."""
    recorder, result = record_call(case.op, Arguments.of(case.drawn()))
    operands = [np.asarray(x) for x in recorder.inputs if x is not None]
    return operands, recorder.attrs, [as_array(y) for y in outputs_of(result)]


@pytest.mark.parametrize("case", of_ops(stating("total")))
def test_total_operators_make_no_nan_of_finite_operands(case):
    operands, _, results = call_of(case)
    assert any(np.isnan(x).any() for x in operands if x.dtype.kind == "f") or not any(
        np.isnan(y).any() for y in results if y.dtype.kind == "f"
    )


@pytest.mark.parametrize("case", of_ops(stating("never_negative")))
def test_what_is_never_negative_is_not(case):
    _, _, results = call_of(case)
    assert not any((y < 0).any() for y in results if y.dtype.kind == "f")


def read(view: View, memory: np.ndarray) -> np.ndarray:
    """Return the elements that a view shows of memory."""
    strides = [s * memory.itemsize for s in view.strides]
    return np.lib.stride_tricks.as_strided(memory[view.offset :], view.shape, strides)


def assert_same(found: list[np.ndarray], expected: list[np.ndarray]) -> None:
    assert [x.shape for x in found] == [x.shape for x in expected]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("case", of_ops(stating("is_view")))
def test_views_show_what_kernels_give(case, order):
    (x, *_), attrs, expected = call_of(case)
    memory = x.ravel(order)
    strides = contiguous_strides(x.shape if order == "C" else x.shape[::-1])
    lying = View(None, x.shape, strides if order == "C" else strides[::-1])
    if case.op.identity:
        made = lying
    elif case.op.reshapes:
        made = lying.reshaped(expected[0].shape)
    else:
        made = case.op.view_rule(lying, *attrs)
    if made is None:
        assert case.op.reshapes or case.op.name == "getitem_adjoint", "no other needs a copy"
        return
    views = made if isinstance(made, list) else [made]
    assert_same([read(view, memory) for view in views], expected)


@pytest.mark.parametrize("case", of_ops(stating("join_rule")))
def test_joined_operands_lie_in_the_result(case):
    operands, attrs, (whole,) = call_of(case)
    view = View(None, whole.shape, contiguous_strides(whole.shape))
    parts = case.op.join_rule(view, [x.shape for x in operands], *attrs)
    assert_same([read(part, whole.ravel()) for part in parts], operands)


@pytest.mark.parametrize("name", stating("multiplications_rule"))
def test_multiplications_are_counted(name):
    """Count them by multiplying ones: what padding adds is multiplied by zeros."""
    exact = 0
    for case in (case for case in SAMPLES if case.name == name):
        operands, attrs, _ = call_of(case)
        if len(operands) > 2:  # a bias
            continue
        absent = [None] * (len(case.op.inputs) - len(operands))
        count = case.op.multiplications_rule(*(x.shape for x in operands), *absent, *attrs)
        ones = np.sum(case.op.kernel(*map(np.ones_like, operands), *absent, *attrs))
        assert ones <= count
        exact += bool(ones == count)
        result = case.op.kernel(*operands, *absent, *attrs).shape
        shapes = [*(x.shape for x in operands), *absent]
        assert operations(case.op, shapes, attrs, result) == 2 * count
    assert exact


def test_work_is_counted():
    window = ((2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1))
    assert operations(find_op("max_pool"), [(1, 1, 4, 4)], (*window, False), (1, 1, 2, 2)) == 16
    assert operations(find_op("exp"), [(3, 4)], (), (3, 4)) == 12
    assert operations(find_op("sum"), [(3, 4)], ((0,), False, None), (4,)) == 12
    assert operations(find_op("where"), [(3,)] * 3, (), (3,)) == 0
    assert operations(find_op("permute"), [(3, 4)], ((1, 0),), (4, 3)) == 0


@pytest.mark.parametrize("name", stating("product_rule"))
def test_products_are_products_of_matrices(name):
    for case in (case for case in SAMPLES if case.name == name):
        operands, attrs, (expected,) = call_of(case)
        absent = [None] * (len(case.op.inputs) - len(operands))
        views = [View(i, x.shape, contiguous_strides(x.shape)) for i, x in enumerate(operands)]
        factors = case.op.product_rule(*views, *absent, *attrs)
        x, y, row = (None if v is None else read(v, operands[v.buffer].ravel()) for v in factors)
        found = np.matmul(x, y) if row is None else np.matmul(x, y) + row
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_fact_that_does_not_exist_is_refused():
    for wrong in ("commutes", "view"):  # a view is a rule
        with pytest.raises(TypeError, match=f"no option '{wrong}'"):
            find_op("add").state(**{wrong: True})


# -- public names ----------------------------------------------------------------------------------


def test_public_names_stand_for_operators_and_composites():
    for names in namespaces.values():
        assert all(find(target) is not None for target in names.values())


def test_wf_is_complete_when_it_is_imported():
    program = (
        "import weft; from weft.core.op import load_all\n"
        "from weft.core.namespaces import namespaces\n"
        "before = sorted(namespaces['wf']); load_all(); assert before == sorted(namespaces['wf'])"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)


@pytest.mark.parametrize(
    "module",
    [wf, wf.linalg, wf.masked, wf.special, wf.nn.functional],
    ids=["wf", "linalg", "masked", "special", "functional"],
)
def test_pickle_finds_public_functions(module):
    name = "wf" if module is wf else module.__name__.removeprefix("weft.")
    for function in (getattr(module, each) for each in namespaces[name]):
        assert pickle.loads(pickle.dumps(function)) is function


def test_methods_that_are_declared_later_are_announced():
    late = tuple(f"weft.ops.{package}." for packages in LATER for package in packages)
    found = {
        name
        for op in registry.values()
        if op.__module__.startswith(late) and op.method
        for name in (op.method if isinstance(op.method, str) else op.name, *op.aliases)
    }
    program = "import weft; print(*(n for n in dir(weft.Tensor)))"
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, cwd=ROOT, capture_output=True, text=True
    )
    assert found <= set(done.stdout.split()), "name them in LATER_METHODS of weft/ops/__init__.py"
    assert set(LATER_METHODS) <= {*found, *composite_methods}


@pytest.mark.parametrize(
    "module",
    [wf.linalg, wf.masked, wf.special, wf.nn.functional],
    ids=["linalg", "masked", "special", "functional"],
)
def test_a_namespace_lists_what_it_offers(module):
    assert set(module.__all__) <= set(dir(module))
    for wrong in ("__path__", "no_such_name"):
        with pytest.raises(AttributeError, match=f"has no attribute '{wrong}'"):
            getattr(module, wrong)
