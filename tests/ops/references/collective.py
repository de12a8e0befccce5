"""References of exchanges: of one process alone, which all samples are of."""

from __future__ import annotations

import numpy as np


def _alone(link, x, how, group, size, axis=0, place=0, note=""):
    return np.asarray(link) + 1, np.array(x)


def _itself(x, group, size):
    return np.array(x)


REFERENCES = {"exchange": _alone, "copy_to_all": _itself}
