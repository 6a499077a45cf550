"""What `tapnet` exports is documented, and the examples in the docstrings run."""

import doctest
import importlib
import inspect

import pytest

import tapnet

EXPORTED = [name for name in tapnet.__all__ if callable(getattr(tapnet, name))]


@pytest.mark.parametrize("name", EXPORTED)
def test_it_is_documented_with_an_example_that_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exported = getattr(tapnet, name)
    text = inspect.getdoc(exported)
    if inspect.isclass(exported) and issubclass(exported, Exception):
        assert text
        return
    assert "Example:" in text
    if inspect.isfunction(inspect.unwrap(exported)):
        assert "Args:" in text or not inspect.signature(exported).parameters
        assert "Returns:" in text
    module = importlib.import_module(exported.__module__)
    for test in doctest.DocTestFinder(recurse=False).find(exported, name, module=module, globs=vars(module).copy()):
        outcome = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test)
        assert outcome.attempted > 0
        assert outcome.failed == 0
