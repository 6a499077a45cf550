"""TAPooling in a PyG model, where TopKPooling would stand, on MUTAG with PyG's DataLoader."""

import torch
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCNConv, global_add_pool, global_max_pool

from tapnet import TAPooling, load_dataset

EPOCHS = 30


class Net(nn.Module):
    def __init__(self, in_channels: int, num_classes: int, channels: int = 32) -> None:
        super().__init__()
        self.first, self.second = GCNConv(in_channels, channels), GCNConv(channels, channels)
        self.pool = TAPooling(channels, ratio=0.5)  # or torch_geometric.nn.TopKPooling(channels, ratio=0.5)
        self.out = nn.Linear(2 * channels, num_classes)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        x = self.first(x, edge_index).relu()
        x, edge_index, _, batch, _, _ = self.pool(x, edge_index, None, batch)
        x = self.second(x, edge_index).relu()
        return self.out(torch.cat([global_add_pool(x, batch), global_max_pool(x, batch)], dim=1))


def main() -> None:
    torch.manual_seed(0)
    dataset = load_dataset("MUTAG")  # 188 molecules that come with tapnet
    graphs = [  # GCNConv takes floats
        Data(one_hot(g.x, dataset.num_features).float(), g.edge_index, y=g.y, num_nodes=g.num_nodes) for g in dataset
    ]
    train, test = train_test_split(graphs, test_size=0.2, stratify=dataset.y, random_state=0)
    model = Net(dataset.num_features, dataset.num_classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    print(model)
    for epoch in range(1, EPOCHS + 1):
        total = 0.0
        for batch in DataLoader(train, batch_size=16, shuffle=True):
            optimizer.zero_grad()
            loss = cross_entropy(model(batch.x, batch.edge_index, batch.batch), batch.y)
            loss.backward()
            optimizer.step()
            total += float(loss.detach()) * batch.num_graphs
        if epoch % 10 == 0:
            print(f"epoch {epoch}: training loss {total / len(train):.3f}")
    model.eval()
    (everything,) = DataLoader(test, batch_size=len(test))
    with torch.no_grad():
        right = model(everything.x, everything.edge_index, everything.batch).argmax(dim=1) == everything.y
    held_out = f"{len(test)} of {len(graphs)} molecules, held out once (stratified, seed 0)"
    print(f"accuracy after the last of {EPOCHS} epochs: {100 * right.float().mean():.1f} % on {held_out}")


if __name__ == "__main__":
    main()
