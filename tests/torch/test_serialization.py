"""Files of PyTorch's, written and read."""

from __future__ import annotations

import io
import pickle
import zipfile

import pytest

from weft import torch
from weft.torch.serialization import UnpicklingError


def kept(obj):
    file = io.BytesIO()
    torch.save(obj, file)
    file.seek(0)
    return torch.load(file)


def test_nests_of_tensors_and_plain_data():
    x = torch.arange(6).reshape(2, 3)
    state = {"x": x, "turned": x.t(), "n": [1, 2.5, None, "a", (True,)], "dtype": torch.float64}
    found = kept(state)
    assert found["x"].tolist() == x.tolist()
    assert found["turned"].tolist() == x.t().tolist()
    assert found["n"] == state["n"]
    assert found["dtype"] == torch.float64


def test_modules_and_optimizers():
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.ones(4, 3)).sum().backward()
    optimizer.step()
    found = kept({"net": net.state_dict(), "optimizer": optimizer.state_dict()})
    other = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    assert repr(other.load_state_dict(found["net"])) == "<All keys matched successfully>"
    assert torch.equal(other[0].weight, net[0].weight)
    torch.optim.Adam(other.parameters()).load_state_dict(found["optimizer"])


def test_parameters_keep_their_class():
    found = kept({"w": torch.nn.Parameter(torch.ones(2))})
    assert isinstance(found["w"], torch.nn.Parameter)
    assert found["w"].requires_grad


def test_code_is_never_run():
    class Evil:
        def __reduce__(self):
            return (print, ("run",))

    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(Evil(), 2))
    file.seek(0)
    with pytest.raises(UnpicklingError, match="not run"):
        torch.load(file)


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04 damaged"])
def test_damaged_files(content):
    with pytest.raises(UnpicklingError):
        torch.load(io.BytesIO(content))


def test_whole_modules_are_refused():
    with pytest.raises(TypeError, match="state_dict"):
        torch.save(torch.nn.Linear(1, 1), io.BytesIO())
