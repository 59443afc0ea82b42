"""The examples of the docstrings and of docs/python.md run."""

import doctest
import re
from pathlib import Path

import hollownet
import pytest
from hollownet import _density, _library, _net, _ode, _sde, _vae

DOCS = Path(__file__).resolve().parents[3] / "docs" / "python.md"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("module", [_density, _library, _net, _ode, _sde, _vae], ids=lambda m: m.__name__)
def test_docstrings(module):
    finder = doctest.DocTestFinder()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for test in finder.find(module, globs={"hollownet": hollownet}):
        runner.run(test)
    assert runner.summarize().failed == 0


@pytest.mark.filterwarnings("ignore")
def test_page(tmp_path, monkeypatch):
    """Every block of Python on the page runs, one after the other, in one namespace."""
    blocks = re.findall(r"^```python\n(.*?)^```", DOCS.read_text(), re.M | re.S)
    assert len(blocks) >= 5
    monkeypatch.chdir(tmp_path)
    space: dict = {}
    for block in blocks:
        if "import torch" in block or "hollownet.torch" in block:
            pytest.importorskip("torch")
        exec(compile(block, str(DOCS), "exec"), space)
