"""Batch norm for steps of any size, also of several processes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class _Sum(torch.autograd.Function):
    """The sum over all processes; each process's loss depends on it, so its gradient is the sum of theirs."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        return _summed(values)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return _summed(gradient)


def _summed(values: Tensor) -> Tensor:
    values = values.clone(memory_format=torch.contiguous_format)
    torch.distributed.all_reduce(values)
    return values


class BatchNorm(nn.BatchNorm1d):
    """torch's BatchNorm1d on [N, d]; a single row, which has no variance, is normalised by the running statistics.

    ``together``: mean and variance are those of the rows of all processes of `torch.distributed`, so that a step that
    they share is the step of one. (torch's SyncBatchNorm does it on GPUs only.)
    """

    together = False

    def forward(self, h: Tensor) -> Tensor:
        """[N, d] → [N, d]"""
        if self.training and self.together:
            return self._over_all_processes(h)
        if len(h) < 2 and self.training:
            return self._by_running_statistics(h)
        return super().forward(h)

    def _by_running_statistics(self, h: Tensor) -> Tensor:
        return nn.functional.batch_norm(
            h, self.running_mean, self.running_var, self.weight, self.bias, False, 0.0, self.eps
        )

    def _over_all_processes(self, h: Tensor) -> Tensor:
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.momentum is not None
        n = _Sum.apply(torch.tensor(float(len(h)), dtype=torch.float64, device=h.device))
        if n < 2:
            return self._by_running_statistics(h)
        mean = _Sum.apply(h.double().sum(0)) / n  # torch's norm counts in double precision too
        centred = h.double() - mean
        variance = _Sum.apply(centred.square().sum(0)) / n
        with torch.no_grad():
            self.running_mean.lerp_(mean.to(h.dtype), self.momentum)
            self.running_var.lerp_((variance * (n / (n - 1))).to(h.dtype), self.momentum)
        normalised: Tensor = centred * torch.rsqrt(variance + self.eps) * self.weight + self.bias
        return normalised.to(h.dtype)
