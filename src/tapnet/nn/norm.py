"""Batch norm for steps of any size."""

from __future__ import annotations

from torch import Tensor, nn


class BatchNorm(nn.BatchNorm1d):
    """torch's BatchNorm1d on [N, d]; a single row, which has no variance, is normalised by the running statistics."""

    def forward(self, h: Tensor) -> Tensor:
        if len(h) < 2 and self.training:
            return nn.functional.batch_norm(
                h, self.running_mean, self.running_var, self.weight, self.bias, False, 0.0, self.eps
            )
        return super().forward(h)
