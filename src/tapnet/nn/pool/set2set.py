"""Set2SetPool: a readout by an LSTM that attends to the nodes."""

from __future__ import annotations

from torch import Tensor

from tapnet.data.batch import GraphBatch
from tapnet.nn.pool.readout import ReadoutPooling


class Set2SetPool(ReadoutPooling):
    r"""The readout from *Order Matters: Sequence to Sequence for Sets* (Vinyals, Bengio, Kudlur, ICLR 2016).

    .. math::
        \mathbf{q}_t = \mathrm{LSTM}(\mathbf{q}^*_{t-1}), \qquad
        \alpha_{i,t} = \mathrm{softmax}_i(h_i \cdot \mathbf{q}_t), \qquad
        \mathbf{q}^*_t = \mathbf{q}_t \,\Vert\, \sum_i \alpha_{i,t} h_i

    PyG's ``Set2Set``. What comes out is twice as wide.

    Args:
        in_channels (int): d, the size of each node's features.
        processing_steps (int): T; DiffPool's authors compare with 3 or 4. (default: ``3``)
    """

    paper = "Vinyals, Bengio, Kudlur: Order Matters: Sequence to Sequence for Sets, ICLR"
    year = 2016
    about = "reads all nodes into one, by an LSTM that attends to them; no ratio"
    cost = "O(N·d + B·d²)"
    memory = "O(N·d + B·d)"

    def __init__(self, in_channels: int, processing_steps: int = 3) -> None:
        from torch_geometric.nn.aggr import Set2Set

        super().__init__()
        self.in_channels, self.out_channels = in_channels, 2 * in_channels
        self.aggr = Set2Set(in_channels, processing_steps)

    def read(self, x: Tensor, batch: GraphBatch) -> Tensor:
        """[N, d] → [B, 2d]"""
        rows: Tensor = self.aggr(x, batch.graph, dim_size=batch.num_graphs)
        return rows
