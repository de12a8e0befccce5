"""Hold that no published text names a place on somebody's machine or a package registry."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Put together from pieces, so that this file does not contain what it forbids.
_DIRECTORIES = ["/".join(["", *parts]) for parts in (["work"], ["root"], ["tmp", "envs"])]
_HOMES = [f"/{name}" for name in ("home", "Users")]
_HOSTS = [
    ".".join(parts)
    for parts in (
        ["pypi", "org"],
        ["files", "pythonhosted", "org"],
        ["debian", "org"],
        ["npmjs", "com"],
        ["npmjs", "org"],
    )
]


def _alternatives(strings: list[str]) -> str:
    return "|".join(map(re.escape, strings))


# A directory counts only where a path begins: "src/work/x" and "example.com/home/" are harmless.
_FORBIDDEN = re.compile(
    rf"(?<![\w.~-])(?:{_alternatives(_DIRECTORIES)})(?![\w-])"
    rf"|(?<![\w.~-])(?:{_alternatives(_HOMES)})/\w"
    rf"|(?<![\w-])(?:{_alternatives(_HOSTS)})(?![\w-])"
)


def forbidden_lines(path: Path) -> Iterator[str]:
    """Yield `line number: text found` for each forbidden string in a text file."""
    content = path.read_bytes()
    if b"\0" in content:  # not text
        return
    for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), start=1):
        for match in _FORBIDDEN.finditer(line):
            yield f"{number}: {match.group()!r}"


def tracked_files(root: Path) -> list[Path]:
    """List the files under version control, or skip the test where there is none."""
    command = ["git", "-C", str(root), "ls-files", "-z"]
    try:
        listing = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"not a git checkout: {error}")
    paths = (root / name for name in listing.split("\0") if name)
    return [path for path in paths if path.is_file()]  # deleted files and submodules drop out


def test_tracked_text_names_no_machine_path_and_no_registry() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in tracked_files(ROOT)
        for line in forbidden_lines(path)
    ]
    assert not found, "remove these from the published text:\n" + "\n".join(found)


@pytest.mark.parametrize("text", [*(d + "/x" for d in _DIRECTORIES + _HOMES), *_DIRECTORIES])
def test_machine_path_is_found(tmp_path: Path, text: str) -> None:
    file = tmp_path / "notes.md"
    file.write_text(f"fine\nsee `{text}` here\n")
    assert [line.partition(":")[0] for line in forbidden_lines(file)] == ["2"]


@pytest.mark.parametrize("host", _HOSTS)
def test_registry_host_is_found(tmp_path: Path, host: str) -> None:
    file = tmp_path / "notes.md"
    file.write_text(f"https://www.{host}/simple\n")
    assert len(list(forbidden_lines(file))) == 1


@pytest.mark.parametrize("directory", [d.lstrip("/") for d in _DIRECTORIES + _HOMES])
def test_relative_path_and_longer_name_are_not_found(tmp_path: Path, directory: str) -> None:
    file = tmp_path / "notes.md"
    file.write_text(
        f"src/{directory}/x ../{directory}/x /{directory}-like example.com/{directory}\n"
    )
    assert list(forbidden_lines(file)) == []


def test_binary_file_is_not_read_as_text(tmp_path: Path) -> None:
    file = tmp_path / "data.bin"
    file.write_bytes(b"\0" + _DIRECTORIES[0].encode() + b"/x")
    assert list(forbidden_lines(file)) == []
