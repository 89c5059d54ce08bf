"""The wheel: for every Python from 3.10 on, and for machines without Rust.

Needs one that was built: `maturin build --release` in `python/`, which puts it into
`target/wheels`, or any other by `LSSVM_WHEEL`. Building takes minutes, so that without one
the tests are skipped.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import zipfile

import pytest
from conftest import ROOT

# Only when asked for: a wheel that lies about may be older than what is tested.
pytestmark = pytest.mark.wheel


@pytest.fixture
def wheel():
    if "LSSVM_WHEEL" in os.environ:
        return pathlib.Path(os.environ["LSSVM_WHEEL"])
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    wheels = sorted((target / "wheels").glob("lssvm-*.whl"), key=os.path.getmtime)
    if not wheels:
        pytest.skip("there is no wheel: maturin build --release in python/, or set LSSVM_WHEEL")
    return wheels[-1]


def test_one_wheel_serves_every_python(wheel):
    assert "-cp310-abi3-" in wheel.name
    with zipfile.ZipFile(wheel) as files:
        (about,) = [name for name in files.namelist() if name.endswith(".dist-info/WHEEL")]
        tags = [line for line in files.read(about).decode().splitlines() if line.startswith("Tag: ")]
        assert tags and all(tag.startswith("Tag: cp310-abi3-") for tag in tags)
        assert "lssvm/_lssvm.abi3.so" in files.namelist()
        assert "lssvm/py.typed" in files.namelist()


def test_it_installs_where_there_is_no_compiler(wheel, tmp_path):
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    binaries = environment / "bin"
    # Nothing else to be found: neither cargo nor a C compiler.
    alone = {"PATH": str(binaries), "HOME": str(tmp_path)}
    assert shutil.which("cargo", path=alone["PATH"]) is None
    install = ["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", str(wheel)]
    subprocess.run([binaries / "python", *install], check=True, env=alone)
    # NumPy and scikit-learn from here; the environment's own packages come first.
    paths = {"base": str(environment), "platbase": str(environment)}
    site = pathlib.Path(sysconfig.get_path("purelib", vars=paths))
    (site / "here.pth").write_text(sysconfig.get_path("purelib") + "\n")
    script = "import lssvm; print(lssvm.__file__, lssvm.LSSVMRegressor().fit([[0.0], [1.0]], [0, 1]))"
    done = subprocess.run(
        [binaries / "python", "-c", script], env=alone, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(str(site)), done.stdout
