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

# Seconds from the signal to KeyboardInterrupt, at most.
PATIENCE = 1.0

# Seconds in which an iterative method then ends its step and leaves the CPU alone.
STEP = 10.0

LONG = """
    import os, signal, threading, time, numpy as np, lssvm
    rng = np.random.default_rng(0)
    sent = []

    def interrupt():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    def busy():
        start = time.process_time()
        time.sleep(0.5)
        return time.process_time() - start > 0.1

    def wait_for_quiet():
        start = time.monotonic()
        while busy():
            if time.monotonic() - start > {step}:
                return "busy"
        return "quiet"

    {prepare}
    threading.Timer(1.0, interrupt).start()
    try:
        {work}
    except KeyboardInterrupt:
        seconds = time.monotonic() - sent[0]
        print("interrupted", seconds, {quiet}, flush=True)
        os._exit(0)
    print("ended")
"""

FIT = """
    X = rng.normal(size=(12000, 300)).astype(np.float32)
    model = lssvm.LSSVMRegressor(method={method!r}, C=1e6, tol=0, max_iter=100000, {more})
"""


NOTED_FIT = """
import time
try:
    model.fit(X, np.sin(X[:, 0]))
finally:
    ended = time.monotonic()
"""


def interrupted(prepare, work, quiet):
    """What a process said that was interrupted after a second: seconds, and the CPU."""
    prepare = textwrap.indent(textwrap.dedent(prepare), "    ").strip()
    told = {"prepare": prepare, "work": work, "step": STEP}
    script = LONG.format(quiet="wait_for_quiet()" if quiet else "None", **told)
    command = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done.stdout.split() or [done.stderr]


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("method", ["mp", "pcg", "gauss-seidel", "kaczmarz-mp", "centers", "exact"])
def test_ctrl_c_ends_a_fit(method):
    more = {"exact": "", "centers": "n_centers=2000"}.get(method, "block_size=1000")
    # The direct method ends between its panels, which may take long on a slow machine.
    iterative = method != "exact"
    said = interrupted(
        FIT.format(method=method, more=more), "model.fit(X, np.sin(X[:, 0]))", quiet=iterative
    )
    if method == "exact" and said == ["ended"]:
        pytest.skip("the machine was faster than the signal")
    assert said[0] == "interrupted" and float(said[1]) < PATIENCE, said
    assert not iterative or said[2] == "quiet"


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_ends_a_prediction():
    prepare = """
        X = rng.normal(size=(4000, 100)).astype(np.float32)
        model = lssvm.LSSVMRegressor().fit(X, X[:, 0])
        X = np.tile(X, (100, 1))
    """
    # Again and again: a fast machine would have ended before the signal.
    said = interrupted(prepare, "while True: model.predict(X)", quiet=True)
    assert said[0] == "interrupted" and float(said[1]) < PATIENCE and said[2] == "quiet", said


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_ends_a_fit_in_a_notebook():
    manager = pytest.importorskip("jupyter_client").manager
    kernel, client = manager.start_new_kernel(kernel_name="python3")
    try:
        prepare = textwrap.dedent(FIT.format(method="mp", more="block_size=1000"))
        ready = client.execute_interactive(
            "import numpy as np, lssvm; rng = np.random.default_rng(0)\n" + prepare, timeout=60
        )
        assert ready["content"]["status"] == "ok", ready
        # An error would otherwise drop what is asked after it, for a moment.
        client.execute(NOTED_FIT, stop_on_error=False)
        time.sleep(1.5)
        start = time.monotonic()
        kernel.interrupt_kernel()
        reply = client.get_shell_msg(timeout=30)
        assert reply["content"]["ename"] == "KeyboardInterrupt", reply
        # The kernel goes on. Its own clock, which is that of the machine, tells when the fit
        # ended: the reply comes later, by the time that IPython takes for the traceback.
        client.execute("", user_expressions={"ended": "ended"})
        told = client.get_shell_msg(timeout=30)["content"]["user_expressions"]["ended"]
        assert float(told["data"]["text/plain"]) - start < PATIENCE
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)


READ = """
    import os, signal, threading, numpy as np, lssvm
    X = np.random.default_rng(0).normal(size=(300_000, 60))
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    lssvm.LSSVMRegressor(method="centers", n_centers=300, memory="200M", tol=0, max_iter=1000).fit(X, X[:, 0])
"""


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_a_process_ends_well_while_rows_are_read():
    # The interpreter ends while a thread of the core asks it for rows of X.
    command = [sys.executable, "-c", textwrap.dedent(READ)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stderr.endswith("KeyboardInterrupt\n"), done.stderr
    assert done.returncode == -signal.SIGINT


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
    model = lssvm.LSSVMRegressor(method="mp", block_size=300, max_iter=200, tol=0)
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


def test_the_bar_is_shown(capsys, monkeypatch):
    monkeypatch.setattr(lssvm._progress, "_PATIENCE", 0)  # Also on a fast machine.
    X = np.random.default_rng(0).normal(size=(4000, 100))
    lssvm.LSSVMRegressor(method="mp", block_size=400, max_iter=60, tol=0, verbose=1).fit(X, X[:, 0])
    assert "mp" in capsys.readouterr().err


WITHOUT_TQDM = """
import sys
sys.modules["tqdm"] = sys.modules["tqdm.auto"] = None
"""

BAR = """
import numpy as np, lssvm, lssvm._progress
lssvm._progress._PATIENCE = 0  # Also on a fast machine.
X = np.random.default_rng(0).normal(size=(4000, 100))
model = lssvm.LSSVMRegressor(method="mp", block_size=400, max_iter=60, tol=0, verbose=1)
_ = model.fit(X, X[:, 0])
"""


@pytest.mark.parametrize("prepare", ["", WITHOUT_TQDM], ids=["tqdm", "plain"])
def test_the_bar_is_shown_in_a_notebook(prepare):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    cell = nbformat.v4.new_code_cell(prepare + BAR)
    notebook = nbformat.v4.new_notebook(cells=[cell])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    # Text, or a widget where there are any.
    shown = "".join(str(output) for output in cell.outputs)
    assert "mp:" in shown and "100" in shown, shown
    assert "Warning" not in shown


def test_an_error_in_the_middle_is_raised(monkeypatch):
    from lssvm import _base

    class Angry:
        def __call__(self, *told):
            raise RuntimeError("no more")

        def close(self):
            pass

    monkeypatch.setattr(_base, "Progress", Angry)
    with pytest.raises(RuntimeError, match="no more"):
        lssvm.LSSVMRegressor(verbose=1).fit(np.eye(30), np.arange(30.0))
