"""Configure the whole test run: extra options, their markers, and Hypothesis profiles."""

import gc
import os
from collections.abc import Iterator
from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, settings

from weft.core.modes import modes
from weft.core.rng import manual_seed

GUARDED = frozenset(("codegen", "compile", "lower"))  # directories whose tests run compiled code

# A slow or busy machine is no fault of the code under test, so nothing here depends on time.
_NO_CLOCK = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

# "ci" draws the same examples on every run: a red build always has a cause in the change itself.
settings.register_profile("ci", _NO_CLOCK, derandomize=True, max_examples=50)
settings.register_profile("long", _NO_CLOCK, max_examples=2000, print_blob=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("weft")
    group.addoption("--long", action="store_true", help="run tests marked long; more examples")
    group.addoption("--few", action="store_true", help="run one sample per operator")
    group.addoption("--peers", action="store_true", help="run comparisons with PyTorch")


def pytest_configure(config: pytest.Config) -> None:
    # Machine code that tests make is no business of the user's cache.
    cache = config.rootpath / ".pytest_cache"
    os.environ.setdefault("WEFT_CACHE_DIR", str(cache / "objects"))
    os.environ.setdefault("WEFT_CACHE_KEY", str(cache / "keys" / "objects"))
    os.environ.setdefault("WEFT_VERIFY", "1")  # kernel programs, after each stage
    if config.getoption("--hypothesis-profile") is None:  # the user's explicit choice stands
        settings.load_profile("long" if config.getoption("--long") else "ci")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Look for no garbage among the tests, which are many and stay to the end, now and later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    reasons = _skip_reasons(config)
    for item in items:
        for marker in item.iter_markers():
            if marker.name in reasons:
                item.add_marker(pytest.mark.skip(reason=reasons[marker.name]))


def _skip_reasons(config: pytest.Config) -> dict[str, str]:
    """Map each marker whose tests do not run to the reason why."""
    reasons = {}
    if not config.getoption("--long"):
        reasons["long"] = "needs --long"
    if not config.getoption("--peers"):
        reasons["peers"] = "needs --peers"
    elif find_spec("torch") is None:
        reasons["peers"] = "needs torch, which is not installed"
    return reasons


@pytest.fixture(autouse=True)
def _same_random_numbers() -> None:
    """Start every test at the same random state, whatever ran before it."""
    manual_seed(0)


@pytest.fixture(autouse=True)
def _no_tensors_elsewhere() -> Iterator[None]:
    """Leave no tensor on another device behind: while there is one, operations are marked."""
    yield
    if modes.base is not None:
        gc.collect()


@pytest.fixture(autouse=True)
def _guarded_arrays(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let tests of compiled code run in memory that tells if anything wrote beside an array."""
    if GUARDED.isdisjoint(request.path.parts) or request.node.get_closest_marker("usual_memory"):
        yield
        return
    from tests.guard import guarded_memory  # noqa: PLC0415  (loads llvmlite; others do without)

    with guarded_memory():
        yield
