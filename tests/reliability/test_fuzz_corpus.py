"""What coverage-guided fuzzing found worth keeping (`fuzz_readers.py`), read again by every reader."""

from __future__ import annotations

import zipfile

import pytest

from tests.helpers.readers import READERS
from tests.reliability.fuzz_readers import CORPUS


@pytest.mark.parametrize("name", READERS)
def test_no_input_that_the_fuzzer_kept_makes_a_reader_fail(name: str) -> None:
    if name == "molecules":
        pytest.importorskip("rdkit")
    with zipfile.ZipFile(CORPUS) as archive:
        kept = [entry for entry in archive.namelist() if entry.startswith(f"{name}/")]
        for content in (*READERS[name].seeds(), *map(archive.read, kept)):
            READERS[name].read(content)
