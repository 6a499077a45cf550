"""Settings: what they are called and what is said of them."""

import pytest

from tapnet.models.registry import MODELS
from tapnet.training.settings import TrainingSettings


@pytest.mark.parametrize(
    "settings", [TrainingSettings, *(spec.settings for spec in MODELS.values())], ids=lambda cls: cls.__name__
)
def test_every_setting_is_described(settings):
    meanings = settings.meanings()
    assert tuple(meanings) == settings.names()
    assert all(words and not words.startswith("one of") for words in meanings.values())


def test_what_a_setting_can_be_is_said_once():
    assert TrainingSettings.meanings()["optimizer"].count("adamw") == 1
    assert MODELS["gin"].settings.meanings()["readout"].endswith("one of sum, mean")
