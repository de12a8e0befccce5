"""References of exchanges: of one process alone, which all samples are of."""

from __future__ import annotations

import numpy as np


def _alone(link, x, how, group, size, axis=0, place=0, note=""):
    return np.asarray(link) + 1, np.array(x)


def _itself(x, group, *place):
    return np.array(x)


def _part(x, group, size, index, axis):
    return np.split(x, size, axis)[index]


REFERENCES = {
    "exchange": _alone,
    "copy_to_all": _itself,
    "placed": _itself,
    "part_of": _part,
}
