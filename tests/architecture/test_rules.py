"""The checker of the layer rule itself: what it catches, and what it lets pass."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from .layers import CHAIN, FORBIDDEN_EVERYWHERE, PACKAGE, SIBLINGS
from .rules import classes_of_one_name, violations


def check(root: Path, **sources: str) -> list[str]:
    """Write a package from `layer__module=source` arguments and return its violations."""
    for name, source in sources.items():
        path = root / PACKAGE / (name.replace("__", "/", 1) + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(source))
    return violations(root)


UPWARD = "weft/ops/exp.py:{line}: layer rule: 'ops' may not import 'graph'"


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("import weft.graph", 1),
        ("import numpy\nimport weft.graph.node as node", 2),
        ("from weft.graph import Graph", 1),
        ("from weft import graph", 1),
        ("from ..graph import node", 1),
        ("from .. import graph", 1),
        ("def f():\n    from weft.graph import Graph", 2),
        ("async def f():\n    from ..graph.node import Node", 2),
        ("class A:\n    def f(self):\n        import weft.graph", 3),
        ("try:\n    import weft.graph\nexcept ImportError:\n    pass", 2),
        ("if TYPE_CHECKING:\n    from weft.graph import Graph", 2),
        ("import importlib\nimportlib.import_module('weft.graph')", 2),
        ("f = lambda: import_module('..graph', __package__)", 1),
        ("__import__('weft.graph.node')", 1),
        ("from importlib import import_module as get\nget('weft.graph')", 2),
        ("from ..core.imports import load as get\nget('weft.graph.node')", 2),
        ("from ..core.imports import require\nrequire('weft.graph', 'x', 'y')", 2),
        ("f = lazy_attributes(globals(), {'weft.graph.node': ('Node',)})", 1),
        ("from ..core.imports import lazy_attributes as l\nl(globals(), {'weft.graph': ()})", 2),
        ("import sys\nsys.modules['weft.graph.node'].Node", 2),
        ("WHERE = 'weft.graph.node:Node'", 1),
        ("exec('from weft.graph.node import Node')", 1),
        ("exec(f'import weft.graph as g; {1}')", 1),
    ],
)
def test_upward_import_is_caught(tmp_path: Path, source: str, line: int) -> None:
    assert check(tmp_path, ops__exp=source) == [UPWARD.format(line=line)]


@pytest.mark.parametrize(
    "source",
    [
        "from importlib import import_module\ndef f(name): import_module(name)",
        "import importlib\nimportlib.import_module('weft.' + 'graph')",
        "from ..core.imports import load\nload(f'weft.{1}')",
        "from ..core.imports import load\nlist(map(load, ['x']))",
        "from ..core.imports import lazy_attributes\nf = lazy_attributes(globals(), TABLE)",
        "from pkgutil import resolve_name\nresolve_name('wef' + 't.graph')",
        "from builtins import open\nget = __import__",
    ],
)
def test_name_made_at_run_time_is_caught(tmp_path: Path, source: str) -> None:
    (message,) = check(tmp_path, ops__exp=source)
    assert message.endswith("imports by a name that is made at run time; write the name out")


def test_names_of_other_packages_and_of_parts_may_be_put_together(tmp_path: Path) -> None:
    source = "from ..core.imports import require\ndef f(x): require(f'sklearn.{x}', 'a', 'b')\n"
    source += "from ..core.imports import load_modules\nload_modules(f'{__name__}.part')\n"
    assert check(tmp_path, ops__exp=source, core__imports="import_module(name)") == []


def test_text_that_names_the_package_is_no_import(tmp_path: Path) -> None:
    source = """
        '''weft.graph: see there; import weft.graph'''
        KIND = "weft.constant.pi"
        LABEL = f"weft.graph.{KIND}"
    """
    assert check(tmp_path, ops__exp=source) == []


SLOT = "from ..core.imports import injected\n_slot = injected({name!r})\n"


@pytest.mark.parametrize(
    ("name", "table", "message"),
    [
        ("Graph.draw", {"Graph.draw": "weft.graph.draw:draw"}, None),
        ("unheard of", {"unheard of": "weft.graph"}, "slot 'unheard of' is not listed"),
        ("Graph.draw", {}, "slot 'Graph.draw' is not filled by weft/injections.py"),
        ("Graph.draw", {"Graph.draw": "weft.core:x"}, "is no injection: import weft.core:x"),
        ("Graph.draw", {"Graph.draw": "weft.ops.x:x"}, "is no injection: import weft.ops.x:x"),
    ],
)
def test_slots_are_listed_and_from_above(
    tmp_path: Path, name: str, table: dict[str, str], message: str | None
) -> None:
    source = SLOT.format(name=name)
    found = check(tmp_path, ops__exp=source, injections=f"INJECTED = {table!r}\n")
    assert len(found) == (message is not None)
    assert all("weft/ops/exp.py:2: " in line and str(message) in line for line in found)


def test_wiring_is_imported_by_nobody(tmp_path: Path) -> None:
    (message,) = check(tmp_path, cli__main="from ..injections import INJECTED")
    assert message == "weft/cli/main.py:1: layer rule: 'cli' may not import 'injections'"


@pytest.mark.parametrize(
    ("user", "source", "private"),
    [
        ("graph__node", "from ..ops.index._spec import explicit", True),
        ("graph__node", "from ..ops.index import _spec", True),
        ("graph__node", "import weft.ops.index._spec", True),
        ("ops__nn/loss", "from ..index._spec import explicit", True),
        ("ops__index/take", "from ._spec import explicit", False),
        ("ops__index/deep/take", "from .._spec import explicit", False),
        ("graph__node", "from ..ops.index import _not_a_module", False),
        ("graph__node", "from .__init__ import x", False),
    ],
)
def test_private_module_of_another_package_is_caught(
    tmp_path: Path, user: str, source: str, private: bool
) -> None:
    found = check(tmp_path, **{"ops__index/_spec": "", user: source})
    assert [line.endswith("a private module of another package") for line in found] == [True][
        :private
    ]


def test_classes_of_one_name_are_found(tmp_path: Path) -> None:
    twice = "class Plan: pass\nclass _Own: pass\n"
    check(tmp_path, core__a=twice, ops__b=twice, graph__c="class Other:\n    class Plan: pass\n")
    assert classes_of_one_name(tmp_path) == ["Plan: weft/core/a.py, weft/ops/b.py"]


def test_relative_import_in_an_init_starts_from_its_own_package(tmp_path: Path) -> None:
    path = tmp_path / "weft" / "ops" / "__init__.py"
    path.parent.mkdir(parents=True)
    path.write_text("from . import graph\nfrom .graph import x\nfrom ..graph import y\n")
    assert violations(tmp_path) == [
        "weft/ops/__init__.py:3: layer rule: 'ops' may not import 'graph'"
    ]


def test_downward_imports_pass(tmp_path: Path) -> None:
    sources = {
        f"{layer}__module": "".join(f"import weft.{lower}.module\n" for lower in CHAIN[: rank + 1])
        for rank, layer in enumerate(CHAIN)
    }
    assert check(tmp_path, **sources) == []


@pytest.mark.parametrize("layer", SIBLINGS)
@pytest.mark.parametrize("upper", ["passes", "backends", "compiler", "capture", "train", "cli"])
def test_sibling_importing_upward_is_caught(tmp_path: Path, layer: str, upper: str) -> None:
    (message,) = check(tmp_path, **{f"{layer}__module": f"import weft.{upper}"})
    assert message == f"weft/{layer}/module.py:1: layer rule: '{layer}' may not import '{upper}'"


@pytest.mark.parametrize(
    "source",
    [
        "from weft.nn.linear import Linear",
        "import weft.nn.linear",
        "from weft.nn import linear",
        "from ..nn.linear import Linear",
    ],
)
def test_reaching_into_a_sibling_is_caught(tmp_path: Path, source: str) -> None:
    (message,) = check(tmp_path, optim__sgd=source, nn__linear="")
    assert message == "weft/optim/sgd.py:1: reaches into 'nn'; import what 'weft.nn' exports"


def test_public_names_of_a_sibling_pass(tmp_path: Path) -> None:
    source = """
        import weft.nn
        from weft import nn
        from weft.nn import Module, functional
        from weft.autodiff.reverse import backward
    """
    package = {"nn__functional": "", "nn____init__": "__all__ = ['Module', 'functional']"}
    assert check(tmp_path, optim__sgd=source, **package) == []
    assert check(tmp_path, train__fit="import weft.nn.functional") == []


def test_compiler_does_not_know_networks(tmp_path: Path) -> None:
    (message,) = check(tmp_path, compiler="from weft.nn import Module")
    assert message == "weft/compiler.py:1: layer rule: 'compiler' may not import 'nn'"


@pytest.mark.parametrize(
    "source",
    ["import weft", "import weft as wf", "from weft import tensor", "from .. import tensor"],
)
def test_importing_the_facade_is_caught(tmp_path: Path, source: str) -> None:
    (message,) = check(tmp_path, train__fit=source)
    assert message.startswith("weft/train/fit.py:1: imports the facade 'weft'")


def test_doors_reach_up_to_their_layer(tmp_path: Path) -> None:
    fine = "import weft.core\nfrom .autodiff import vjp\n"
    found = check(
        tmp_path, extend=fine, linalg=fine + "import weft.passes\n", __main__="import weft.cli"
    )
    assert found == ["weft/linalg.py:3: layer rule: 'linalg' may not import 'passes'"]


def test_facade_may_import_every_layer(tmp_path: Path) -> None:
    path = tmp_path / "weft" / "__init__.py"
    path.parent.mkdir()
    path.write_text("".join(f"from weft.{layer} import *\n" for layer in (*CHAIN, *SIBLINGS)))
    assert violations(tmp_path) == []


def test_module_without_a_row_is_caught(tmp_path: Path) -> None:
    (message,) = check(tmp_path, misc="")
    assert message.startswith("weft/misc.py:1: 'misc' has no row in the tables")


def test_file_that_does_not_parse_is_named_and_hides_no_other(tmp_path: Path) -> None:
    broken, upward = check(tmp_path, core__dtype="x = 1\ny = (", ops__exp="import weft.graph")
    assert broken.startswith("weft/core/dtype.py:2: does not parse on Python")
    assert upward == UPWARD.format(line=1)


@pytest.mark.parametrize("package", FORBIDDEN_EVERYWHERE)
def test_forbidden_package_is_caught_even_inside_a_function(tmp_path: Path, package: str) -> None:
    (message,) = check(tmp_path, train__fit=f"def f():\n    import {package}.special\n")
    assert message.startswith(f"weft/train/fit.py:2: imports {package}, which nothing")


def test_what_the_package_replaces_is_caught(tmp_path: Path) -> None:
    (message,) = check(tmp_path, graph__run="from functools import cache, cached_property\n")
    assert message.startswith("weft/graph/run.py:1: imports functools.cached_property; use core/")


def test_imports_of_threads_that_compile_hold_the_lock(tmp_path: Path) -> None:
    source = "def f():\n    with deferred_imports:\n        import json\n    import csv\n"
    (message,) = check(tmp_path, backends__code=source, train__fit=source)
    assert message.startswith("weft/backends/code.py:4: imports csv in a function: write it under")


def test_llvmlite_is_for_the_compiler_only(tmp_path: Path) -> None:
    source = "def f():\n    with deferred_imports:\n        from llvmlite import binding\n"
    (message,) = check(tmp_path, capture__call=source, backends__emit=source, compiler=source)
    assert message.startswith("weft/capture/call.py:3: imports llvmlite, which only backends")


def test_optional_package_is_imported_only_where_it_is_used(tmp_path: Path) -> None:
    source = "def f():\n    import ml_dtypes\nimport numpy.linalg, os.path\nimport ml_dtypes\n"
    (message,) = check(tmp_path, core__dtype=source)
    assert message.startswith("weft/core/dtype.py:4: imports ml_dtypes when it loads")
