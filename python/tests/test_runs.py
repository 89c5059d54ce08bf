"""Fits that end early, survive their process, or begin where another ended."""

import json
import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import lssvm
from lssvm import _base

RUN = {"C": 10, "gamma": 0.5, "method": "mp", "block_size": 40, "max_iter": 150, "tol": 0}


def problem(n=200, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 4))
    return X, np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]])


class Told:
    """Notes the iterations it is told of; raises at one of them."""

    def __init__(self, end=None):
        self.iterations, self.end = [], end

    def __call__(self, kind, *told):
        if kind == "iteration":
            self.iterations.append(told[0])
            if told[0] == self.end:
                raise KeyboardInterrupt

    def close(self):
        pass


@pytest.fixture
def watch(monkeypatch):
    """Makes fits with verbose=1 tell what they do."""

    def watched(end=None):
        told = Told(end)
        monkeypatch.setattr(_base, "Progress", lambda: told)
        return told

    return watched


# ----- time


@pytest.mark.parametrize("method", ["pcg", "mp", "centers"])
def test_time_ends_a_fit(method):
    X, y = problem(2000)
    model = lssvm.LSSVMRegressor(
        C=1e9, gamma=5.0, method=method, tol=0, max_iter=10**6, time_limit=0.3, random_state=0
    )
    if method == "mp":
        model.fit(X, y)
    else:
        with pytest.warns(ConvergenceWarning, match="out of time.*raise time_limit"):
            model.fit(X, y)
    assert 1 <= model.n_iter_ < 10**6
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), "long"])
def test_a_time_that_is_none_is_refused(seconds):
    X, y = problem(50)
    with pytest.raises(ValueError, match="time_limit"):
        lssvm.LSSVMRegressor(method="mp", time_limit=seconds).fit(X, y)


# ----- checkpoints


def interrupted(folder, watch, iteration=7, **parameters):
    """A run that was interrupted, some iterations after this one."""
    X, y = problem()
    watch(end=iteration)
    model = lssvm.LSSVMRegressor(
        checkpoint=folder, checkpoint_every=0, verbose=1, **RUN | parameters
    )
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    return model


@pytest.mark.parametrize("early_stopping", [False, True])
@pytest.mark.parametrize("random_state", [3, None])
def test_an_interrupted_fit_goes_on_to_the_same_bits(early_stopping, random_state, watch, tmp_path):
    X, y = problem()
    folder = tmp_path / "run"
    parameters = {"early_stopping": early_stopping, "random_state": random_state}
    model = interrupted(folder, watch, **parameters)
    assert not hasattr(model, "dual_coef_")
    told = watch()
    model.fit(X, y)
    assert min(told.iterations) > 7
    assert len(model.history_["iteration"]) == model.n_iter_
    assert not folder.exists()
    if random_state is not None:
        whole = lssvm.LSSVMRegressor(**RUN | parameters).fit(X, y)
        np.testing.assert_array_equal(model.dual_coef_, whole.dual_coef_)
        np.testing.assert_array_equal(model.intercept_, whole.intercept_)
        np.testing.assert_array_equal(model.history_["residual"], whole.history_["residual"])


KILLED = """
    import os, signal, sys
    import numpy as np
    import lssvm
    from lssvm import _base

    class Killer:
        def __call__(self, kind, *told):
            if kind == "iteration" and told[0] == 9:
                os.kill(os.getpid(), signal.SIGKILL)

        def close(self):
            pass

    _base.Progress = Killer
    sys.path.insert(0, {tests!r})
    from test_runs import RUN, problem
    X, y = problem()
    lssvm.LSSVMRegressor(
        checkpoint={folder!r}, checkpoint_every=0, random_state=5, verbose=1, **RUN
    ).fit(X, y)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_a_fit_whose_process_was_killed_goes_on(watch, tmp_path):
    folder = tmp_path / "run"
    script = KILLED.format(tests=os.path.dirname(__file__), folder=str(folder))
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    X, y = problem()
    told = watch()
    model = lssvm.LSSVMRegressor(checkpoint=folder, random_state=5, verbose=1, **RUN).fit(X, y)
    assert min(told.iterations) > 1
    whole = lssvm.LSSVMRegressor(random_state=5, **RUN).fit(X, y)
    np.testing.assert_array_equal(model.dual_coef_, whole.dual_coef_)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"C": 20}, "begun with C = 10.0, and this one is with C = 20.0"),
        ({"block_size": 50}, "block_size = 40"),
        ({"random_state": 4}, "random_state = 3"),
        ({"time_limit": 9}, "begun without time_limit"),
        ({"method": "kaczmarz"}, 'method = "mp"'),
        ({"X": 1}, "the features are not those"),
        ({"y": 1}, "the labels are not those"),
        ({"sample_weight": 1}, "the weights of the rows are not those"),
    ],
)
def test_another_run_is_refused_with_the_reason(change, reason, watch, tmp_path):
    folder = tmp_path / "run"
    model = interrupted(folder, watch, random_state=3)
    watch()
    X, y = problem()
    weights = None
    X[0, 0] += change.pop("X", 0)
    y[0, 0] += change.pop("y", 0)
    if change.pop("sample_weight", 0):
        weights = np.linspace(1, 2, len(X))
    with pytest.raises(ValueError, match=reason) as raised:
        model.set_params(**change).fit(X, y, sample_weight=weights)
    assert str(folder) in str(raised.value)
    assert (folder / "checkpoint").exists()


def test_what_is_no_checkpoint_is_refused_and_left(tmp_path):
    (tmp_path / "checkpoint").write_bytes(b"no checkpoint")
    X, y = problem()
    with pytest.raises(ValueError, match="checkpoint"):
        lssvm.LSSVMRegressor(checkpoint=tmp_path, **RUN).fit(X, y)
    assert (tmp_path / "checkpoint").read_bytes() == b"no checkpoint"


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    X, y = problem()
    with pytest.raises(OSError, match="file"):
        lssvm.LSSVMRegressor(checkpoint=tmp_path / "file", **RUN).fit(X, y)
    for every in (-1, float("nan"), "often"):
        with pytest.raises(ValueError, match="checkpoint_every"):
            lssvm.LSSVMRegressor(
                checkpoint=tmp_path / "run", checkpoint_every=every, **RUN
            ).fit(X, y)


def test_a_fit_that_is_kept_has_the_bits_of_one_that_is_not(tmp_path):
    X, y = problem()
    for method in ("mp", "pcg", "gauss-seidel", "centers", "exact"):
        parameters = RUN | {"method": method, "random_state": 0, "tol": 1e-6}
        plain = lssvm.LSSVMRegressor(**parameters)
        kept = lssvm.LSSVMRegressor(checkpoint=tmp_path / method, checkpoint_every=0, **parameters)
        np.testing.assert_array_equal(kept.fit(X, y).predict(X), plain.fit(X, y).predict(X))
        assert not (tmp_path / method).exists()


def test_a_model_file_does_not_say_where_its_run_was_kept(tmp_path):
    X, y = problem()
    model = lssvm.LSSVMRegressor(checkpoint=str(tmp_path / "run"), **RUN).fit(X, y)
    model.save(tmp_path / "m.lssvm")
    again = lssvm.load(tmp_path / "m.lssvm")
    assert again.checkpoint is None
    assert again.get_params() == model.get_params() | {"checkpoint": None}


def test_a_folder_that_is_lost_is_a_warning(monkeypatch, tmp_path):
    folder = tmp_path / "run"

    class Thief(Told):
        def __call__(self, kind, *told):
            if kind == "iteration" and told[0] == 5:
                # At once, also while a checkpoint is being written.
                folder.rename(tmp_path / "stolen")

    monkeypatch.setattr(_base, "Progress", Thief)
    X, y = problem()
    model = lssvm.LSSVMRegressor(
        checkpoint=folder, checkpoint_every=0, random_state=0, verbose=1, **RUN
    )
    with pytest.warns(UserWarning, match="could not be kept"):
        model.fit(X, y)
    whole = lssvm.LSSVMRegressor(random_state=0, **RUN).fit(X, y)
    np.testing.assert_array_equal(model.dual_coef_, whole.dual_coef_)


def test_a_checkpoint_that_cannot_be_removed_costs_no_model(monkeypatch, tmp_path):
    folder = tmp_path / "run"

    class Blocker(Told):
        def __call__(self, kind, *told):
            if kind == "iteration" and told[0] == 5:
                # A folder has the name of the file.
                folder.rename(tmp_path / "away")
                (folder / "checkpoint").mkdir(parents=True)

    monkeypatch.setattr(_base, "Progress", Blocker)
    X, y = problem()
    model = lssvm.LSSVMRegressor(checkpoint=folder, verbose=1, **RUN)
    with pytest.warns(UserWarning, match="cannot remove the checkpoint"):
        model.fit(X, y)
    assert model.predict(X).shape == y.shape


@pytest.mark.skipif(os.name == "nt", reason="locks")
def test_a_folder_that_another_process_uses_is_refused(watch, tmp_path):
    import fcntl

    folder = tmp_path / "run"
    model = interrupted(folder, watch)
    watch()
    with open(folder / "lock", "w") as lock:
        # As another process would have it, once the interrupted run has left it.
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ValueError, match="in use by another process"):
            model.fit(*problem())
    model.fit(*problem())


# ----- going on from a solution


def known_rows(model):
    return json.loads(model._report.json())["warm_start"]


def test_a_second_fit_goes_on_from_the_first():
    X, y = problem()
    parameters = RUN | {"max_iter": 10, "random_state": 0}
    model = lssvm.LSSVMRegressor(warm_start=True, **parameters).fit(X, y)
    first = model.residual_
    again = model.fit(X, y).residual_
    assert again < 0.9 * first
    assert known_rows(model) == {"known": 200, "new": 0, "gone": 0}
    # Without it a second fit is the first.
    cold = lssvm.LSSVMRegressor(**parameters)
    assert cold.fit(X, y).residual_ == cold.fit(X, y).residual_ == first


@pytest.mark.parametrize("method", ["pcg", "gauss-seidel", "mp", "kaczmarz-mp", "auto"])
def test_it_ends_at_the_solution_of_a_cold_start(method):
    X, y = problem()
    parameters = {"gamma": 0.5, "tol": 1e-9, "max_iter": 3000, "random_state": 0}
    expected = lssvm.LSSVMRegressor(C=3, gamma=0.5, method="exact").fit(X, y).predict(X)
    model = lssvm.LSSVMRegressor(C=1, warm_start=True, **parameters).fit(X[:150], y[:150])
    model.set_params(C=3, method=method, block_size=100).fit(X, y)
    assert known_rows(model) == {"known": 150, "new": 50, "gone": 0}
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-5)


def test_a_start_that_is_near_takes_fewer_iterations(digits):
    X, y, _, _ = digits
    parameters = {"C": 100, "method": "pcg", "tol": 1e-8, "random_state": 0}
    cold = lssvm.LSSVMClassifier(**parameters).fit(X, y).n_iter_
    model = lssvm.LSSVMClassifier(**parameters | {"C": 99}, warm_start=True).fit(X, y)
    assert model.set_params(C=100).fit(X, y).n_iter_ < cold
    # It is the solution already.
    assert model.fit(X, y).n_iter_ == 1


def test_a_loaded_model_goes_on(tmp_path, digits):
    X, y, X_test, _ = digits
    parameters = {"C": 100, "preprocess": "standardize", "random_state": 0}
    lssvm.LSSVMClassifier(**parameters).fit(X[:600], y[:600]).save(tmp_path / "m.lssvm")
    model = lssvm.load(tmp_path / "m.lssvm").set_params(warm_start=True, tol=1e-8)
    scale = model._model.description
    model.fit(X, y)
    assert known_rows(model) == {"known": 600, "new": 300, "gone": 0}
    # Preprocessing and kernel are those of the file, though the rows are others.
    for part in ("pipeline", "kernel"):
        assert json.loads(model._model.description)[part] == json.loads(scale)[part]
    assert model.score(X, y) > 0.99


def test_classes_may_be_new(digits):
    X, y, _, _ = digits
    parameters = {"C": 10, "gamma": 0.05, "method": "pcg", "tol": 1e-10}
    model = lssvm.LSSVMClassifier(warm_start=True, **parameters).fit(X[y < 8], y[y < 8])
    model.fit(X, y)
    assert model.classes_.tolist() == list(range(10))
    cold = lssvm.LSSVMClassifier(**parameters).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), cold.decision_function(X), atol=1e-6)


def test_the_precision_of_the_model_stays():
    X, y = problem()
    model = lssvm.LSSVMRegressor(method="pcg", warm_start=True).fit(X.astype(np.float32), y)
    assert model.fit(X, y).dual_coef_.dtype == np.float32
    with pytest.raises(ValueError, match="precision"):
        model.set_params(precision="f64").fit(X, y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gamma": 0.7}, "gamma = 0.7"),
        ({"kernel": "laplacian"}, "kernel = laplacian"),
        ({"preprocess": "standardize"}, "preprocess = standardize"),
        ({"method": "exact"}, "exact"),
        ({"method": "nystrom"}, "nystrom"),
    ],
)
def test_what_a_start_cannot_serve_is_refused(change, message):
    X, y = problem()
    model = lssvm.LSSVMRegressor(gamma=0.5, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match=message):
        model.set_params(**change).fit(X, y)


@pytest.mark.parametrize(
    ("name", "value"), [("checkpoint", "run"), ("warm_start", True), ("augment", "flip")]
)
def test_a_kernel_that_is_given_has_none_of_it(name, value):
    model = lssvm.LSSVMRegressor(kernel="precomputed", **{name: value})
    with pytest.raises(ValueError, match=f"{name}: needs a kernel that the core can compute"):
        model.fit(np.eye(40), np.arange(40.0))
