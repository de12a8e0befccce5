"""What programs use besides tensors and modules: data, images, checkpoints, settings."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from weft import torch, torchvision
from weft.data import write_idx
from weft.faces import serving
from weft.torch.utils.checkpoint import checkpoint
from weft.torch.utils.data import (
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
    random_split,
)
from weft.torch.utils.tensorboard import SummaryWriter


class Squares(Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, i):
        return torch.tensor(float(i)), i * i


def test_loaders():
    loader = DataLoader(Squares(), batch_size=4, shuffle=False, pin_memory=True, num_workers=0)
    batches = list(loader)
    assert len(loader) == 3
    assert batches[0][1].tolist() == [0, 1, 4, 9]
    assert batches[0][0].max(0).indices.item() == 3
    generator = torch.Generator().manual_seed(3)
    order = [x.item() for x, _ in DataLoader(Squares(), shuffle=True, generator=generator)]
    assert sorted(order) == list(range(10))
    rows = TensorDataset(torch.eye(3), torch.arange(3))
    assert [y.tolist() for _, y in DataLoader(rows, batch_size=2, drop_last=True)] == [[0, 1]]
    assert next(iter(DataLoader(rows, collate_fn=len, batch_size=3))) == 3


def test_rows_of_tensors_are_taken_together():
    x, y = torch.arange(12.0).reshape(6, 2), torch.arange(6)
    order = [4, -1, 0]
    ((a, b),) = DataLoader(TensorDataset(x, y), batch_size=3, sampler=order)
    assert a.tolist() == x[order].tolist()
    assert b.tolist() == [4, 5, 0]
    a[0] = -1.0
    assert x.min().item() == 0.0
    (batch,) = DataLoader(TensorDataset(x), batch_size=6)
    assert isinstance(batch, list)
    assert batch[0].dtype == torch.float32
    ((listed, _),) = DataLoader(TensorDataset([1.5, 2.5, 3.5], y[:3]), batch_size=3)
    assert listed.dtype == torch.float64
    with pytest.raises(IndexError, match="out of bounds"):
        list(DataLoader(TensorDataset(x), batch_size=2, sampler=[0, 6]))


def test_samplers_and_parts():
    parts = random_split(Squares(), [7, 3], generator=torch.Generator().manual_seed(0))
    assert [len(p) for p in parts] == [7, 3]
    assert len(random_split(Squares(), [0.5, 0.5])[1]) == 5
    assert len(ConcatDataset([Squares(), Subset(Squares(), [1, 2])])) == 12
    assert ConcatDataset([Squares(), Squares()])[-1][1] == 81
    assert sorted(RandomSampler(range(4))) == [0, 1, 2, 3]
    assert list(WeightedRandomSampler([0.0, 1.0], 3)) == [1, 1, 1]


def test_streams():
    class Count(IterableDataset):
        def __iter__(self):
            return iter(range(5))

    assert [b.tolist() for b in DataLoader(Count(), batch_size=3)] == [[0, 1, 2], [3, 4]]


def test_images(tmp_path):
    folder = tmp_path / "MNIST" / "raw"
    folder.mkdir(parents=True)
    images = np.arange(2 * 28 * 28, dtype=np.uint8).reshape(2, 28, 28)
    for name in ("train", "t10k"):
        write_idx(folder / f"{name}-images-idx3-ubyte", images)
        write_idx(folder / f"{name}-labels-idx1-ubyte", np.array([3, 4], np.uint8))
    transform = torchvision.transforms.Compose(
        [torchvision.transforms.ToTensor(), torchvision.transforms.Normalize((0.5,), (0.5,))]
    )
    digits = torchvision.datasets.MNIST(tmp_path, train=True, download=True, transform=transform)
    image, label = digits[1]
    assert label == 4
    assert image.shape == (1, 28, 28)
    assert image.min().item() == -1
    batch, _ = next(iter(DataLoader(digits, batch_size=2)))
    grid = torchvision.utils.make_grid(batch, nrow=2, normalize=True)
    assert grid.shape == (3, 32, 62)
    torchvision.utils.save_image(batch, tmp_path / "grid.png")
    assert (tmp_path / "grid.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(RuntimeError, match="Dataset not found"):
        torchvision.datasets.FashionMNIST(tmp_path / "nowhere")


def test_checkpoints_compute_again():
    w = torch.ones(3, requires_grad=True)
    checkpoint(lambda x: (x * x).exp(), w, use_reentrant=False).sum().backward()
    np.testing.assert_allclose(w.grad, 2 * np.e, rtol=1e-6)


def test_tensorboard(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", torch.tensor(1.5), 3)
        writer.add_histogram("w", torch.arange(4.0), 3)
        writer.add_text("note", "text")
    assert any("tfevents" in path.name for path in tmp_path.iterdir())


def test_settings_that_change_nothing():
    torch.backends.cudnn.benchmark = True
    assert not torch.backends.mps.is_available()
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.cuda.amp.autocast():
        assert torch.ones(1).dtype == torch.float32
    scaler = torch.amp.GradScaler("cpu")
    w = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=1.0)
    scaler.scale((w * 2).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert w.item() == -1
    torch.set_float32_matmul_precision("high")
    torch.cuda.manual_seed_all(0)


def test_samplers_of_ones_own():
    class Reversed(torch.utils.data.Sampler):
        def __init__(self, count):
            self.count = count

        def __iter__(self):
            return iter(range(self.count - 1, -1, -1))

        def __len__(self):
            return self.count

    loader = torch.utils.data.DataLoader(torch.arange(5), 2, sampler=Reversed(5))
    assert [batch.tolist() for batch in loader] == [[4, 3], [2, 1], [0]]
    sampler = torch.utils.data.BatchSampler(Reversed(4), 3, True)
    loader = torch.utils.data.DataLoader(torch.arange(4), batch_sampler=sampler)
    assert [batch.tolist() for batch in loader] == [[3, 2, 1]]


def test_batches_are_lists_and_floats_have_64_bits():
    items = [{"a": 1, "b": (2.0, torch.ones(2))}, {"a": 3, "b": (4, torch.zeros(2))}]
    (batch,) = torch.utils.data.DataLoader(items, batch_size=2)
    assert batch["a"].tolist() == [1, 3]
    assert isinstance(batch["b"], list)
    assert batch["b"][0].dtype == torch.float64
    assert batch["b"][1].dtype == torch.float32
    (batch,) = torch.utils.data.DataLoader([(1, 2.5)])
    assert batch[0].dtype == torch.int64
    assert torch.utils.data.default_collate([(1, 2.5)])[1].dtype == torch.float64


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("torch.nn.modules.batchnorm", "_BatchNorm"),
        ("torch.nn.modules.utils", "_pair"),
        ("torch.nn.modules", "Conv2d"),
        ("torch.nn.utils.clip_grad", "clip_grad_norm_"),
        ("torch.optim.optimizer", "Optimizer"),
        ("torch.optim.adam", "Adam"),
        ("torch.autograd.function", "Function"),
        ("torch.backends.cudnn", "benchmark"),
        ("torch.distributions.transforms", "TanhTransform"),
        ("torch.distributions.transforms", "StackTransform"),
        ("torch.distributions.transforms", "identity_transform"),
        ("torch.utils.tensorboard", "SummaryWriter"),
    ],
)
def test_modules_that_programs_import_from(module, name):
    with serving({"torch": "weft.torch"}):
        assert hasattr(importlib.import_module(module), name)


@pytest.mark.parametrize(
    ("module", "advice"),
    [
        ("torch.fft", "complex numbers are not served"),
        ("torch.onnx", r"use wf\.export"),
        ("torch.utils.benchmark", "use timeit"),
        ("torch.nn.attention", "scaled_dot_product_attention"),
        ("torch.nowhere.deep", "No module named 'torch.nowhere'"),
    ],
)
def test_missing_modules_say_what_to_use(module, advice):
    with serving({"torch": "weft.torch"}), pytest.raises(ModuleNotFoundError, match=advice):
        importlib.import_module(module)


def test_classes_that_others_derive_from():
    loss = torch.nn.modules.loss._WeightedLoss(torch.ones(2), reduction="sum")
    assert (loss.reduction, list(loss.state_dict())) == ("sum", ["weight"])
    assert torch.nn.modules.loss._Loss(size_average=False).reduction == "sum"
    assert isinstance(torch.nn.BatchNorm2d(2), torch.nn.modules.batchnorm._BatchNorm)
    assert torch.nn.modules.utils._pair(3) == (3, 3)
