"""The paper's own numbers, its tables and figures as sets of trials, and how they are reproduced."""

from tapnet.paper.run import MissingTrials, Reproduction, missing, reproduce

__all__ = ["MissingTrials", "Reproduction", "missing", "reproduce"]
