"""A pooling layer of your own in TAPNet's architecture, compared with TAP by a short cross-validation."""

import numpy as np
import torch
from sklearn.model_selection import StratifiedKFold
from torch import Tensor
from torch.nn.functional import cross_entropy

from tapnet import GraphBatch, GraphDataset, TAPNet, load_dataset
from tapnet.nn.pool.select import SelectPooling

EPOCHS, FOLDS = 25, 3


class DegreePool(SelectPooling):
    """Keeps the nodes with the most neighbours. It has nothing to learn."""

    def score(self, h: Tensor, batch: GraphBatch) -> Tensor:
        return batch.degree.to(h.dtype)  # [N]; h, [N, d], holds the features and is not looked at

    def scale(self, rows: Tensor, score: Tensor) -> Tensor:
        return rows  # the kept rows as they are; a learned score would have to scale them to get a gradient


def accuracy(model: TAPNet, dataset: GraphDataset, train: np.ndarray, test: np.ndarray) -> float:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001, weight_decay=0.0008)
    model.train()
    for _ in range(EPOCHS):
        for part in torch.from_numpy(train)[torch.randperm(len(train))].split(32):
            batch = dataset.batch(part)  # the disjoint union of these graphs
            optimizer.zero_grad()
            cross_entropy(model(batch), batch.y).backward()
            optimizer.step()
    model.eval()
    batch = dataset.batch(test)
    with torch.no_grad():
        return 100 * float((model(batch).argmax(dim=1) == batch.y).float().mean())


def main() -> None:
    dataset = load_dataset("MUTAG")
    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(np.zeros(len(dataset)), dataset.y))
    print(f"MUTAG, {FOLDS} stratified folds × {EPOCHS} epochs, test accuracy at the last epoch, mean ± deviation:")
    for name, pool in (("TAP", "tap"), ("by degree", DegreePool)):
        torch.manual_seed(0)
        found = []
        for train, test in folds:
            model = TAPNet(dataset.num_features, dataset.num_classes, pool=pool)
            found.append(accuracy(model, dataset, train, test))
        print(f"  {name:10} {np.mean(found):.1f} ± {np.std(found):.1f} %   {', '.join(f'{a:.1f}' for a in found)}")
    print(f"One seed and {FOLDS} folds: a difference smaller than the deviation says nothing.")


if __name__ == "__main__":
    main()
