"""Ctrl-C, progress, and other threads while a fit runs."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import lssvm

LONG_FIT = """
    import os, threading, time, numpy as np, lssvm
    X = np.random.default_rng(0).normal(size=(12000, 300)).astype(np.float32)
    y = np.sin(X[:, 0])
    model = lssvm.LSSVMRegressor(method={method!r}, C=1e6, tol=0, max_iter=100000, {more})
    threading.Timer(1.0, lambda: os.kill(os.getpid(), 2)).start()
    start = time.monotonic()
    try:
        model.fit(X, y)
    except KeyboardInterrupt:
        print("interrupted", time.monotonic() - start, flush=True)
        os._exit(0)
    print("ended")
"""


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("method", ["mp", "pcg", "exact"])
def test_ctrl_c_ends_a_fit(method):
    more = "" if method == "exact" else "block_size=1000"
    script = textwrap.dedent(LONG_FIT.format(method=method, more=more))
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120
    )
    assert done.stdout.startswith("interrupted") or (method == "exact" and done.stdout == "ended\n")


def ticks_during(work):
    """How often another thread got its turn while `work` ran."""
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.wait(0.001):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.monotonic()
    work()
    end = time.monotonic()
    stop.set()
    thread.join()
    return sum(start < t < end for t in ticks)


def test_other_threads_run_during_a_fit():
    X = np.random.default_rng(0).normal(size=(3000, 50))
    model = lssvm.LSSVMRegressor(method="mp", block_size=300, max_iter=20)
    assert ticks_during(lambda: model.fit(X, X[:, 0])) > 5


def test_other_threads_run_while_files_are_read_and_written(tmp_path):
    X = np.random.default_rng(0).normal(size=(1500, 8000))
    model = lssvm.LSSVMRegressor(kernel="linear").fit(X, X[:, 0])
    path = tmp_path / "m.lssvm"
    table = tmp_path / "t.csv"
    table.write_text("a,b,c,y\n" + "1.25,2.5,3.75,0.5\n" * 200_000)
    # Without the lock set free there would be none, or one at the very beginning.
    assert ticks_during(lambda: model.save(path)) > 3
    assert ticks_during(lambda: lssvm.load(path)) > 3
    assert ticks_during(lambda: model._model.to_bytes()) > 3
    assert ticks_during(lambda: lssvm.load_dataset(table)) > 3
    page = tmp_path / "page.html"
    assert ticks_during(lambda: lssvm.report(model, X, X[:, 0], page)) > 3
    with pytest.raises(ValueError, match="n_jobs"):
        lssvm.report(model.set_params(n_jobs=0), X, X[:, 0], page)


def test_the_bar_is_shown(capsys):
    X = np.random.default_rng(0).normal(size=(4000, 100))
    lssvm.LSSVMRegressor(method="mp", block_size=400, max_iter=60, tol=0, verbose=1).fit(X, X[:, 0])
    assert "mp" in capsys.readouterr().err


def test_an_error_in_the_middle_is_raised(monkeypatch):
    from lssvm import _estimators

    class Angry:
        def __call__(self, *told):
            raise RuntimeError("no more")

        def close(self):
            pass

    monkeypatch.setattr(_estimators, "Progress", Angry)
    with pytest.raises(RuntimeError, match="no more"):
        lssvm.LSSVMRegressor(verbose=1).fit(np.eye(30), np.arange(30.0))


assert signal.SIGINT == 2
