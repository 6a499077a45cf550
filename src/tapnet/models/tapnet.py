"""TAPNet (sections 3.3 and 4.1): an embedding GCN, blocks of GCN and pooling, readouts of each, a classifier."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal

import torch
from pydantic import Field, PlainValidator, model_validator
from torch import Tensor, nn
from torch.nn.functional import softplus

from tapnet.data.batch import GraphBatch
from tapnet.data.dataset import GraphDataset, Task
from tapnet.data.features import FeatureRows
from tapnet.errors import SettingError
from tapnet.models.base import GraphClassifier, Outputs, micro_batches_within
from tapnet.models.settings import Count, Dropout, Ratios, Settings, Weight
from tapnet.models.spec import ModelSpec
from tapnet.nn.conv.gcn import GraphConv
from tapnet.nn.conv.registry import find_conv, is_given_edges, make_conv, reads_edges, reads_weights
from tapnet.nn.linear import Affine
from tapnet.nn.link import LinkReading
from tapnet.nn.norm import BatchNorm
from tapnet.nn.pool.base import Pooled, PoolSetup
from tapnet.nn.pool.registry import find_name, resolve
from tapnet.nn.similarity import Similarity
from tapnet.nn.tap import LEARNED_AND_SCHEDULED, Gate, VoteScale
from tapnet.ops.csr import Norm
from tapnet.ops.dropout import dropout
from tapnet.ops.readout import readout

Pool = Annotated[str, PlainValidator(find_name)]  # of a layer that is known; a class is registered
Conv = Annotated[str, PlainValidator(find_conv)]
Activation = Literal["relu", "elu"]
Readout = Literal["all", "last"]

OF_TAP = (  # settings of that layer alone
    *("connectivity", "similarity", "local_voting", "global_voting", "gate"),
    *("heads", "vote_scale", "learn_connectivity", "connectivity_end", "edge_votes"),
)
# Section 4.1: ReLU in the classifier on these sets, ELU on the others.
RELU_SETS = ("DD", "PTC", "MUTAG", "COLLAB", "REDDIT-MULTI5K", "REDDIT-MULTI12K")


class TAPNetSettings(Settings):
    """Everything that shapes a TAPNet; the defaults are the paper's.

    Args:
        hidden_channels: the size of each node's features inside.
        ratios: the share of nodes that each pooling layer keeps, of the graph as it comes in, or their number.
        pool: the pooling layer: a name of `tapnet pools`, or module:Class.
        connectivity: λ, the weight of the degree in the score.
        similarity: of two neighbours, in local voting.
        local_voting: whether the neighbours' vote counts (Eq. 1).
        global_voting: whether the whole graph's vote counts (Eq. 2).
        gate: how the gradient reaches the scores.
        norm: of the GCN; the paper does not say which.
        activation: of the classifier; by default as the paper has it on the data set.
        dropout: on the inputs of the GCN layers and of the votes.
        classifier_channels: units of the hidden layer of the classifier.
        classifier_dropout: in the classifier.
        aux: the weight of the link prediction objective; 0 is off.
        link_reading: how that objective makes probabilities of similarities.
        conv: the convolution: gcn, gin, gine, sage, gat, or module:Class.
        readout: of every level (all), as in the paper, or of the coarsest one alone (last).
        heads: how many votes each node gets; this and what follows is not in the paper.
        vote_scale: what local votes are divided by: nodes, the paper's n, or channels, √d.
        learn_connectivity: whether λ is learned, from ``connectivity`` on.
        edge_votes: whether votes read what edges carry.
        connectivity_end: λ in the last epoch, to which it goes evenly from ``connectivity`` in the first; or null.
        ensemble_size: networks that are trained side by side; the logits are the means of theirs.
        classifier_heads: classifiers on the same readouts; the logits are the means of theirs.
        readout_norm: whether asinh and a batch norm scale the readouts before they are classified.
    """

    hidden_channels: Count = 48
    ratios: Ratios = (0.8, 0.6, 0.4)
    pool: Pool = "tap"
    connectivity: float = 0.1
    similarity: Similarity = "bilinear"
    local_voting: bool = True
    global_voting: bool = True
    gate: Gate = "straight-through"
    norm: Norm = "neighbour"
    activation: Activation = "relu"
    dropout: Dropout = 0.3
    classifier_channels: Count = 512
    classifier_dropout: Dropout = 0.2
    aux: Weight = 0.0
    link_reading: LinkReading = "sigmoid"
    conv: Conv = "gcn"
    readout: Readout = "all"
    heads: Count = 1
    vote_scale: VoteScale = "nodes"
    learn_connectivity: bool = False
    edge_votes: bool = False
    connectivity_end: float | None = None
    ensemble_size: Annotated[int, Field(ge=1, le=100)] = 1
    classifier_heads: Annotated[int, Field(ge=1, le=100)] = 1
    readout_norm: bool = False

    ADDED_LATER = (
        *("conv", "readout", "heads", "vote_scale", "learn_connectivity", "edge_votes", "ensemble_size"),
        *("connectivity_end", "classifier_heads", "readout_norm"),
    )

    @property
    def follows_epochs(self) -> bool:
        """Whether λ does."""
        return self.connectivity_end is not None

    def shortened(self, progress: float) -> TAPNetSettings:
        """With the λ of that epoch as the last one."""
        if self.connectivity_end is None:
            return self
        return self.replace(connectivity_end=(1 - progress) * self.connectivity + progress * self.connectivity_end)

    @model_validator(mode="after")
    def _check_pool(self) -> TAPNetSettings:
        for name in OF_TAP:
            if self.pool != "tap" and getattr(self, name) != type(self).model_fields[name].default:
                raise SettingError(f"{name} is a setting of pool 'tap'; pool {self.pool!r} has none")
        if self.aux > 0 and (self.pool != "tap" or not self.local_voting):
            raise SettingError("aux uses the similarities of local voting: it needs pool 'tap' with local voting on")
        if self.learn_connectivity and self.connectivity_end is not None:
            raise SettingError(LEARNED_AND_SCHEDULED)
        return self


# Chosen on held-out parts of ESOL and BBBP (docs/molecules.md): bonds are read, no dropout, many steps,
# averaged weights of a late epoch, four classifiers.
MOLECULES = {
    "conv": "gine",
    "hidden_channels": 128,
    "similarity": "dot",
    "dropout": 0.0,
    "classifier_channels": 128,
    "classifier_heads": 4,
    "classifier_dropout": 0.0,
    "epochs": 20,
    "batch_size": 32,
    "lr": 0.004,
    "optimizer": "adamw",
    "schedule": "one-cycle",
    "weight_decay": 0.01,
    "amsgrad": False,
    "average_power": 6.0,
    "select_from": 0.5,
}


def excluded_by(given: Mapping[str, Any]) -> tuple[str, ...]:
    """The names in `MOLECULES` that do not go with these: only TAP with one head takes the dot product."""
    return () if given.get("pool", "tap") == "tap" and given.get("heads", 1) == 1 else ("similarity",)


def activation_on(dataset_name: str) -> dict[str, Activation]:
    """The setting ``activation`` that the paper has on this data set."""
    return {"activation": "relu" if dataset_name in RELU_SETS else "elu"}


class TAPNet(GraphClassifier):
    """TAPNet for graph classification, from *Topology-Aware Graph Pooling Networks* (Gao, Liu, Ji).

    A graph convolution embeds the nodes, then each block convolves and pools; the maximum, mean and sum over the nodes
    after each of these (with ``readout="last"`` after the last one alone, so that nothing gets past the pooling) are
    classified by two dense layers. With ``aux``, or a pooling layer that has losses, there is a loss to be added in
    training, which a call does not return:
    ``model.outputs(GraphBatch.from_edge_index(x, edge_index, batch))`` has ``logits`` and ``auxiliary``. A call takes
    ``edge_weight``, [E], and, where the network reads them, ``edge_attr`` beside ``edge_index``.

    With ``ensemble_size=K`` it is K such networks with initial weights of their own, and its logits are the means of
    theirs. The auxiliary loss then has a term that makes each of them learn from its own error. Levels, embeddings
    and pooling layers are those of the first. ``classifier_heads=K`` does the same with classifiers, which share the
    readouts and so cost little. ``readout_norm=True`` scales the readouts, which large graphs need to be learned fast.

    Args:
        in_channels (int): the number of categories, or of float features.
        num_classes (int): C.
        hidden_channels (int): the size of each node's features inside. (default: ``48``)
        ratios (tuple of float or int): what each pooling layer keeps, of the graph as it comes in; a share, or a number
            of nodes. (default: ``(0.8, 0.6, 0.4)``)
        pool (str or type): the pooling layer: a name of :func:`tapnet.list_pools` (``"tap"``, ``"topk"``, …,
            ``"none"``), ``"package.module:Class"``, which is imported, or a class, either a ``Pooling`` or one with
            PyG's calling convention. (default: ``"tap"``)
        mean_nodes (float, optional): of a graph of the data; what soft clusterings count their clusters by.
        edge_channels (int): categories and numbers of an edge, for convolutions that read them. (default: ``0``)
        **settings: every other field of ``TAPNetSettings``, by name; the defaults are the paper's.

    Raises:
        SettingError: if a setting is not known or has a value that it cannot have.

    Example:
        >>> model = TAPNet(7, 2)
        >>> edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> model(torch.tensor([0, 3, 0]), edge_index).shape
        torch.Size([1, 2])
    """

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        hidden_channels: int = 48,
        ratios: tuple[float | int, ...] = (0.8, 0.6, 0.4),
        pool: str | type[nn.Module] = "tap",
        *,
        mean_nodes: float | None = None,
        edge_channels: int = 0,
        **settings: Any,
    ) -> None:
        super().__init__()
        pool = find_name(pool, allow_import=True)
        if "conv" in settings:
            settings["conv"] = find_conv(settings["conv"], allow_import=True)
        s = TAPNetSettings(hidden_channels=hidden_channels, ratios=ratios, pool=pool, **settings)
        self.settings, self.in_channels, self.num_classes = s, in_channels, num_classes
        self.edge_channels = edge_channels
        self.reads_edges = edge_channels > 0 and _reads_edges(s)
        conv = partial(make_conv, s.conv, norm=s.norm, dropout=s.dropout, edge_channels=edge_channels)
        if s.conv == "gcn":
            self.embedding: nn.Module = GraphConv(in_channels, hidden_channels, s.norm, s.dropout)
        else:  # other convolutions do not look categories up
            self.embedding = EmbeddingConv(in_channels, hidden_channels, conv(hidden_channels, hidden_channels))
        pools = [resolve(pool).build(setup) for setup in _setups(s, mean_nodes, edge_channels)]
        self.pools = nn.ModuleList(pools)
        pooled = [p.out_channels for p in pools]
        self.convs = nn.ModuleList(conv(width, hidden_channels) for width in [hidden_channels, *pooled][: len(pools)])
        widths = [hidden_channels, *pooled]
        read = 3 * (sum(widths) if s.readout == "all" else widths[-1])
        dense = (s.activation, s.classifier_dropout, s.classifier_heads, s.readout_norm)
        self.classifier = Classifier(read, s.classifier_channels, num_classes, *dense)
        one = s.replace(ensemble_size=1).to_dict()
        shape: dict[str, Any] = {"mean_nodes": mean_nodes, "edge_channels": edge_channels}
        others = [TAPNet(in_channels, num_classes, **shape, **one) for _ in range(1, s.ensemble_size)]
        self.others = nn.ModuleList(others)  # of the ensemble

    def outputs(self, batch: GraphBatch) -> Outputs:
        """The logits, and while training the loss of pooling layers and of an ensemble, if there is one."""
        levels = list(self.levels(batch))
        read = self.readouts(levels)
        losses = [level.loss for level in levels if level.loss is not None] if self.training else []
        if self.training and self.settings.classifier_heads > 1:
            by_head = self.classifier.by_head(read)
            logits = by_head.mean(dim=0)
            losses.append(ensemble_loss(by_head, batch.y, self.task))
        else:
            logits = self.classifier(read)
        if self.others:
            given = self.scaled(batch)
            rest = [member.outputs(given) for member in self.others if isinstance(member, TAPNet)]
            each = torch.stack([logits, *(outputs.logits for outputs in rest)])
            logits = each.mean(dim=0)
            if self.training:
                losses += [outputs.auxiliary for outputs in rest if outputs.auxiliary is not None]
                losses = [loss / len(each) for loss in losses]
                losses.append(ensemble_loss(each, batch.y, self.task))
        return Outputs(logits, torch.stack(losses).sum() if losses else None)

    def levels(self, batch: GraphBatch) -> Iterator[Pooled]:
        """The embedded graphs, then what each block makes of them: what the readouts are taken of."""
        batch = self.scaled(batch)
        level = Pooled(self.embedding(batch.x, batch), batch)
        yield level
        for conv, pool in zip(self.convs, self.pools, strict=True):
            level = pool(conv(level.x, level.batch), level.batch)
            yield level

    def embed(self, batch: GraphBatch) -> Tensor:
        """[B, width]: the readouts of the levels."""
        return self.readouts(self.levels(batch))

    def readouts(self, levels: Iterable[Pooled]) -> Tensor:
        """[B, width]: max, mean and sum of every level or the last, which is what the classifier gets of a graph."""
        read = list(levels)[-1:] if self.settings.readout == "last" else levels
        return torch.cat([readout(level.x, level.batch) for level in read], dim=1)

    def coarsened(self, batch: GraphBatch) -> list[GraphBatch]:
        """The graphs after each pooling layer that keeps nodes."""
        kept = [level.batch for level in self.levels(batch) if level.perm is not None]
        return [graphs for graphs in kept if isinstance(graphs, GraphBatch)]

    def micro_batches(self, graphs: Tensor, sizes: Tensor) -> Sequence[Tensor]:
        """As few groups as the pooling layer that takes the most memory allows."""

        def elements(nodes: int) -> int:
            most = max((pool.elements(nodes) for pool in self.pools), default=0)  # type: ignore[operator]
            return self.settings.ensemble_size * most

        return micro_batches_within(graphs, sizes, elements) if elements(1) else (graphs,)


def ensemble_loss(logits: Tensor, y: Tensor | None, task: Task) -> Tensor:
    """What the mean loss of the networks (or classifiers) of an ensemble has above the loss of their mean logits.

    Added to the latter, it lets each network learn as if it were alone. Cross-entropies differ from a convex function
    of the logits, and the squared error from the square, by terms that are linear in the logits: these cancel out, so
    that the targets only say which are missing.

    Args:
        logits: ``[K, B, C]`` or ``[K, B, T]``, of each network.
        y: ``[B, T]`` with NaN for what is missing; None if nothing is. Classes are not looked at.
        task: the kind of the targets.
    """
    mean = logits.mean(dim=0)
    if task == "classification":
        return (logits.logsumexp(dim=2).mean(dim=0) - mean.logsumexp(dim=1)).mean()
    convex = softplus if task == "multilabel" else torch.square
    above = convex(logits).mean(dim=0) - convex(mean)
    there = torch.ones_like(above) if y is None else (~y.isnan()).to(above.dtype)
    return (above * there).sum() / there.sum().clamp(min=1)


def _setups(s: TAPNetSettings, mean_nodes: float | None, edge_channels: int) -> Iterator[PoolSetup]:
    """What each pooling layer is told."""
    tap = {name: getattr(s, name) for name in OF_TAP if name != "edge_votes"}
    tap |= {"link_weight": s.aux, "link_reading": s.link_reading}
    if s.edge_votes:
        if not edge_channels:
            raise SettingError("edge_votes reads what edges carry, and these edges carry nothing")
        tap["edge_channels"] = edge_channels
    for level in range(len(s.ratios)):
        yield PoolSetup(s.hidden_channels, s.ratios, level, s.dropout, s.norm, mean_nodes, tap)


class EmbeddingConv(nn.Module):
    """A dense layer that looks categories up, then a convolution."""

    def __init__(self, in_channels: int, hidden_channels: int, conv: nn.Module) -> None:
        super().__init__()
        self.lookup, self.conv = Affine(in_channels, hidden_channels), conv

    def forward(self, x: FeatureRows, batch: GraphBatch) -> Tensor:
        """[N] categories, [N, in] floats, or both → [N, out]"""
        h: Tensor = self.conv(self.lookup(x), batch)
        return h


class Classifier(nn.Module):
    """Two dense layers with dropout on both inputs; or the mean of several such heads, with weights of their own.

    With ``norm``, asinh and a batch norm come first: sums over the nodes of large graphs are thousands of times what
    maxima and means are, and differ as much from graph to graph. asinh leaves small values as they are and takes the
    logarithm of large ones.

    Args:
        in_channels: the size of what is classified.
        hidden_channels: units of the hidden layer of each head.
        num_classes: C.
        activation: of the hidden layer.
        dropout: on the inputs of both layers.
        heads: K.
        norm: whether the input is scaled.

    Attributes:
        hidden: the first layers of all heads, one after the other.
        out: the second layers, likewise.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        num_classes: int,
        activation: Activation,
        dropout: float,
        heads: int = 1,
        norm: bool = False,
    ) -> None:
        super().__init__()
        self.norm = BatchNorm(in_channels) if norm else None
        self.hidden = nn.Linear(in_channels, heads * hidden_channels)
        self.out = nn.Linear(hidden_channels, heads * num_classes)
        self.activation, self.dropout, self.heads = activation, dropout, heads
        for layer in (self.hidden, self.out):
            for weight in layer.weight.chunk(heads):
                nn.init.xavier_uniform_(weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        """[B, in] → [B, C]"""
        h = self._hidden(x)
        logits: Tensor = self.out(h) if self.heads == 1 else self._outputs(h).mean(dim=0)
        return logits

    def by_head(self, x: Tensor) -> Tensor:
        """[B, in] → [K, B, C]"""
        return self._outputs(self._hidden(x))

    def _hidden(self, x: Tensor) -> Tensor:
        x = x if self.norm is None else self.norm(x.asinh())
        h = self.hidden(dropout(x, self.dropout, self.training))
        h = nn.functional.relu(h) if self.activation == "relu" else nn.functional.elu(h)
        return dropout(h, self.dropout, self.training)

    def _outputs(self, h: Tensor) -> Tensor:
        """[B, K · hidden] → [K, B, C]"""
        rows = h.unflatten(1, (self.heads, -1)).transpose(0, 1)
        weight, bias = self.out.weight.unflatten(0, (self.heads, -1)), self.out.bias.unflatten(0, (self.heads, 1, -1))
        return torch.baddbmm(bias, rows, weight.transpose(1, 2))


def _reads_edges(settings: TAPNetSettings) -> bool:
    return reads_edges(settings.conv) or settings.edge_votes


def _without_weights(settings: TAPNetSettings) -> str:
    if reads_weights(settings.conv):
        return ""
    pooling = " (the pooling does)" if settings.pool == "tap" else ""
    return f"the convolution {settings.conv.rpartition(':')[2]} does not use the edges' weights{pooling}"


def _prepare(dataset: GraphDataset, settings: TAPNetSettings) -> GraphDataset:
    given = is_given_edges(settings.conv) or settings.edge_votes
    if settings.conv == "gine" or (given and dataset.num_edge_features):
        dataset = dataset.with_edge_features()
    return resolve(settings.pool).prepare(dataset, settings.ratios)


# Around the paper's settings: widths, dropout and ratios; convolution, learning rates and batches as those that Errica
# and others (A Fair Comparison of Graph Neural Networks, ICLR 2020) try of other systems.
SEARCH = {
    "hidden_channels": (32, 48, 64, 128),
    "ratios": ((0.8, 0.6, 0.4), (0.9, 0.8, 0.7), (0.8, 0.6), (0.5, 0.5)),
    "conv": ("gcn", "gin"),
    "dropout": (0.0, 0.3, 0.5),
    "lr": (0.0003, 0.001, 0.003, 0.01),
    "weight_decay": (0.0, 0.0008, 0.005),
    "batch_size": (32, 64, 128),
}

SPEC = ModelSpec(
    name="tapnet",
    system="TAPNet",
    paper="Gao, Liu, Ji: Topology-Aware Graph Pooling Networks, TPAMI",
    year=2021,
    about="this package's own; its setting pool puts another pooling layer in the place of TAP",
    settings=TAPNetSettings,
    build=lambda shape, settings: TAPNet(
        shape.in_channels,
        shape.num_classes,
        mean_nodes=shape.mean_nodes,
        edge_channels=shape.edge_channels,
        **settings.to_dict(),
    ),
    on_dataset=activation_on,
    molecules=MOLECULES,
    excluded_by=excluded_by,
    search=SEARCH,
    prepare=_prepare,
    reads_edges=_reads_edges,
    without_weights=_without_weights,
    keeps_directions=lambda settings: resolve(settings.pool).directed,
)
