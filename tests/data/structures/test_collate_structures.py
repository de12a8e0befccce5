"""Batches of structures, as loaders, `fit` and networks take them."""

import pytest

import weft as wf
from weft.data import DataLoader, collate_structures, make_trees


class TreeNet(wf.nn.Module):
    """Classes of trees, by plain recursion for one of them."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.join = wf.nn.Embedding(10, 8), wf.nn.Linear(16, 8)
        self.out = wf.nn.Linear(8, 3)
        self.batched = wf.batched(self.one, reduce="stack")

    def state(self, tree):
        if tree.word is not None:
            return self.embed(wf.tensor(int(tree.word[1:])))
        return wf.tanh(self.join(wf.concat([self.state(tree.left), self.state(tree.right)])))

    def one(self, tree):
        return self.out(self.state(tree))

    def forward(self, trees):
        return self.batched(trees)


@pytest.mark.filterwarnings("ignore:jit. .* runs eagerly")
def test_fit_takes_a_dataset_of_structures() -> None:
    trees = make_trees(60, leaves=(2, 4), vocabulary=10, seed=0)
    data = [(tree, tree.label) for tree in trees]
    loader = DataLoader(data, batch_size=10, shuffle=True, collate_fn=collate_structures)
    wf.manual_seed(0)
    net = TreeNet()
    net.compile(optimizer=wf.optim.Adam(net.parameters(), lr=0.02), loss="cross_entropy")
    history = net.fit(loader, epochs=6, verbose=0)
    losses = history.history["loss"]
    assert losses[-1] < 0.8 * losses[0]


def test_structures_alone_stay_a_list() -> None:
    assert collate_structures([[1], [2, 3]]) == [[1], [2, 3]]


def test_pairs_are_pairs() -> None:
    with pytest.raises(TypeError, match=r"pairs .*Received: \(1, 2, 3\)"):
        collate_structures([(1, 2), (1, 2, 3)])
