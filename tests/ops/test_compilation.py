"""The loops that processes compile before they need them."""

import torch
from numba.core.sigutils import normalize_signature

from tapnet import TAPNet, load_dataset
from tapnet._loops import jit
from tapnet.training.settings import TrainingSettings
from tapnet.training.trainer import Trainer


def test_what_is_compiled_before_training_is_what_training_calls():
    trainer = Trainer(TAPNet(7, 2), load_dataset("MUTAG"), torch.arange(64), TrainingSettings(), seed=0)
    trainer.train_epoch()
    for name, (dispatcher, types) in jit.loops_of_training.items():
        wanted, _ = normalize_signature(f"({types},)")
        assert wanted in dispatcher().signatures, name
