"""The paper's formulas written out n×n, one graph at a time: the oracle for everything sparse and batched."""

import math
from types import SimpleNamespace

import torch


def adjacency(n, edge_index):
    """A with Aᵢⱼ = 1 where edge_index has a column (i, j); no self-loops, repeated columns once."""
    a = torch.zeros(n, n, dtype=torch.float64)
    a[edge_index[0], edge_index[1]] = 1
    return a.fill_diagonal_(0)


def similarities(pool, h):
    """R, [n, n]"""
    if pool.similarity == "bilinear":
        return h @ pool.weight @ h.T
    if pool.similarity == "dot":
        return h @ h.T
    if pool.similarity == "gaussian":
        return torch.exp(h @ h.T)
    n = len(h)
    pairs = torch.cat([h.unsqueeze(1).expand(n, n, -1), h.unsqueeze(0).expand(n, n, -1)], dim=2)
    return torch.relu(pairs @ pool.weight)


def votes(pool, h, a, of_edges=None):
    """Eq. 1, 2 and 4; with heads their means, with what edges carry, [n, n, c], q · eᵢⱼ beside r(hᵢ, hⱼ)."""
    if pool.heads > 1:
        parts = [votes(_head(pool, m), h, a, of_edges) for m in range(pool.heads)]
        return [torch.stack(part).mean(0) for part in zip(*parts, strict=True)]
    n = len(h)
    a_hat = a + torch.eye(n, dtype=a.dtype)
    d_hat_inverse = torch.diag(1 / a_hat.sum(1))
    normalised = d_hat_inverse @ a_hat
    local = global_ = torch.zeros(n, dtype=h.dtype)
    if pool.local_voting:
        r = similarities(pool, h) + (0 if of_edges is None else of_edges @ pool.edge_weight)
        r_hat = r * normalised
        local = torch.softmax(r_hat.sum(1) / (n if pool.vote_scale == "nodes" else h.size(1) ** 0.5), 0)
    if pool.global_voting:
        global_ = torch.softmax(normalised @ h @ pool.projection, 0)
    learned = pool.learned_connectivity
    given = pool.connectivity if pool.scheduled_connectivity is None else pool.scheduled_connectivity.item()
    connectivity = (given if learned is None else learned) * a.sum(1) / n
    return local, global_, connectivity, local + global_ + connectivity


def _head(pool, number):
    shared = ("similarity", "local_voting", "global_voting", "connectivity", "learned_connectivity", "vote_scale")
    own = {name: None if (w := getattr(pool, name)) is None else w[number] for name in ("weight", "projection")}
    same = {name: getattr(pool, name) for name in (*shared, "scheduled_connectivity", "edge_weight")}
    return SimpleNamespace(heads=1, **own, **same)


def top(score, k):
    """The k highest, ties to the lower number, in ascending order."""
    ranked = sorted(range(len(score)), key=lambda i: (-score[i].item(), i))
    return sorted(ranked[:k])


def propagate(h, a, norm):
    a_hat = a + torch.eye(len(a), dtype=a.dtype)
    d = a_hat.sum(1)
    if norm == "neighbour":
        return a_hat @ torch.diag(1 / d) @ h
    if norm == "symmetric":
        return torch.diag(d**-0.5) @ a_hat @ torch.diag(d**-0.5) @ h
    if norm == "mean":
        return torch.diag(1 / d) @ a_hat @ h
    return a_hat @ h


def link_loss(pool, h, a, reading="sigmoid"):
    """(1/n²) Σᵢⱼ f(R̃ᵢⱼ, Aᵢⱼ)"""
    r = similarities(pool, h)
    if reading == "sigmoid":  # -a log σ(r) - (1-a) log(1-σ(r)), without cancellation
        return (torch.nn.functional.softplus(r) - a * r).mean()
    p = torch.softmax(r, dim=1).clamp(1e-300, 1 - math.ulp(1.0))
    return -(a * p.log() + (1 - a) * (1 - p).log()).mean()
