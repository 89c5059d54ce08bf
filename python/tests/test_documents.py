"""What people read is run: the notebook, the pages, the types."""

import inspect
import re
import subprocess
import sys

import pytest
from conftest import ROOT

import lssvm


def test_the_notebook_runs():
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    notebook = nbformat.read(ROOT / "docs" / "quick-start.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()


def python_blocks(path):
    return re.findall(r"```python\n(.*?)```", path.read_text(), flags=re.DOTALL)


def test_the_readme_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for block in python_blocks(ROOT / "python" / "README.md"):
        exec(compile(block, "README.md", "exec"), {})


def test_the_page_runs(monkeypatch):
    monkeypatch.chdir(ROOT)
    for block in python_blocks(ROOT / "docs" / "python.md"):
        # A few rows are enough to see that it runs.
        block = block.replace('load_dataset("data/mnist")', 'load_dataset("data/mnist", max_rows=300)')
        exec(compile(block, "python.md", "exec"), {})


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda p: p.name)
def test_the_benchmarks_are_python_of_every_version_we_promise(path):
    # What they import is not installed everywhere, so they are read and not run.
    compile(path.read_text(), path, "exec")


STUBTEST = ["mypy.stubtest", "lssvm._lssvm", "--ignore-missing-stub", "--ignore-disjoint-bases"]


@pytest.mark.parametrize("command", [["mypy"], STUBTEST])
def test_the_types_hold(command):
    pytest.importorskip("mypy")
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT / "python", capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


# scikit-learn's order of the parts of a docstring.
PARTS = ["Parameters", "Returns", "Attributes", "See Also", "Notes", "References", "Examples"]


def documented():
    """What is public: functions, classes, and their methods."""
    for name in lssvm.__all__:
        thing = getattr(lssvm, name)
        if not callable(thing):
            continue
        yield pytest.param(thing, id=name)
        if inspect.isclass(thing):
            own = inspect.getmembers(thing, inspect.isfunction)
            for method, function in own:
                if not method.startswith("_") and function.__module__.startswith("lssvm"):
                    yield pytest.param(function, id=f"{name}.{method}")


@pytest.mark.parametrize("thing", list(documented()))
def test_docstrings_have_the_order_of_scikit_learn(thing):
    text = inspect.getdoc(thing)
    parts = re.findall(r"^(\w[\w ]*)\n-+$", text, flags=re.MULTILINE)
    assert parts == sorted(parts, key=PARTS.index)
    parameters = [name for name in inspect.signature(thing).parameters if name != "self"]
    described = re.search(r"^Parameters\n-+\n(.*?)(\n\n\w|\Z)", text, flags=re.M | re.S)
    names = re.findall(r"^(\w[\w, ]*) : ", described.group(1), flags=re.M) if described else []
    assert [name for names in names for name in names.split(", ")] == parameters
    if thing.__name__ in lssvm.__all__:
        assert "Examples" in parts
