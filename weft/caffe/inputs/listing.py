"""List files of Caffe: a line for each file, or for each file and its label."""

from __future__ import annotations

from typing import Any

from ...data import DataFileError
from ...data.errors import check_file


def read_lines(path: Any) -> list[str]:
    """Return the lines of a list file without those that are empty."""
    shown = check_file(path)
    try:
        with open(shown, encoding="utf-8") as file:
            return [line.strip() for line in file if line.strip()]
    except UnicodeDecodeError as error:
        raise DataFileError(shown, None, f"expected text: {error}") from None


def read_labelled(path: Any) -> list[tuple[str, int]]:
    """Return files and labels; a name may have blanks in it, the label stands last."""
    found = []
    for number, line in enumerate(read_lines(path), 1):
        name, _, label = line.rpartition(" ")
        try:
            found.append((name.strip(), int(label)))
        except ValueError:
            raise DataFileError(
                path, f"entry {number}", f"expected a file and its label. Received: {line:.80}"
            ) from None
    if not found:
        raise DataFileError(path, None, "expected lines with a file and its label, found none")
    return found
