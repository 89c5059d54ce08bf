"""Models in files: between Python and the program, and as ONNX."""

import json
import pickle
import subprocess

import numpy as np
import pytest
from conftest import ROOT

import lssvm

MNIST = ROOT / "data" / "mnist"


def run(program, *arguments):
    return subprocess.run([program, *map(str, arguments)], check=True, capture_output=True, text=True)


def scores_of_program(program, model, data, tmp_path):
    out = tmp_path / "scores.csv"
    run(program, "predict", model, data, "--scores", "--output", out)
    return np.loadtxt(out, delimiter=",", skiprows=1)


def test_the_program_reads_models_of_python(program, tmp_path):
    mnist = lssvm.load_dataset(MNIST, max_rows=600)
    model = lssvm.LSSVMClassifier(
        C=1e4, kernel="poly", degree=4, gamma=1, preprocess="center,unit-norm"
    ).fit(mnist.data, mnist.target)
    model.save(tmp_path / "m.lssvm")
    np.save(tmp_path / "X.npy", mnist.test.data)
    run(program, "predict", tmp_path / "m.lssvm", tmp_path / "X.npy", "--scores", "--output", tmp_path / "s.csv")
    told = np.loadtxt(tmp_path / "s.csv", delimiter=",", skiprows=1, dtype=str)
    scores = told[:, -10:].astype(np.float32)
    np.testing.assert_array_equal(scores, model.decision_function(mnist.test.data))


def test_python_reads_models_of_the_program(program, tmp_path):
    run(
        program, "train", MNIST, "--train-rows", 600, "--model", tmp_path / "m.lssvm",
        "--json", tmp_path / "told.json", "--class-weight", "balanced",
    )  # fmt: skip
    model = lssvm.load(tmp_path / "m.lssvm")
    assert isinstance(model, lssvm.LSSVMClassifier) and model.C == 1e4
    assert model.classes_.tolist() == list(range(10))
    test = lssvm.load_dataset(MNIST).test
    told = json.loads((tmp_path / "told.json").read_text())
    error = 100 * (1 - model.score(test.data, test.target))
    assert error == pytest.approx(told["error_percent"], abs=1e-9)
    np.save(tmp_path / "X.npy", test.data[:300])
    run(program, "predict", tmp_path / "m.lssvm", tmp_path / "X.npy", "--scores", "--output", tmp_path / "s.csv")
    told = np.loadtxt(tmp_path / "s.csv", delimiter=",", skiprows=1, dtype=str)
    np.testing.assert_array_equal(
        told[:, -10:].astype(np.float32), model.decision_function(test.data[:300])
    )
    # It can be trained again with what the program was told.
    from sklearn.base import clone

    clone(model).set_params(max_iter=-1).fit(test.data[:200], test.target[:200])


def test_blocks_of_predictions_have_the_bits_of_the_program(program, tmp_path):
    # More rows than a block, and not a multiple of it.
    X = np.random.default_rng(0).normal(size=(17_001, 3)).astype(np.float32)
    model = lssvm.LSSVMRegressor().fit(X[:200], np.sin(X[:200, 0]))
    model.save(tmp_path / "m.lssvm")
    np.save(tmp_path / "X.npy", X)
    run(program, "predict", tmp_path / "m.lssvm", tmp_path / "X.npy", "--output", tmp_path / "p.csv")
    told = np.loadtxt(tmp_path / "p.csv", dtype=np.float32)
    np.testing.assert_array_equal(told, model.predict(X))


def test_regression_round_trip(tmp_path):
    X = np.random.default_rng(0).normal(size=(50, 3))
    for y in (X[:, 0], X[:, :2], X[:, :1]):
        model = lssvm.LSSVMRegressor(C=5, preprocess="standardize").fit(X, y)
        model.save(tmp_path / "r.lssvm")
        again = lssvm.load(tmp_path / "r.lssvm")
        assert again.get_params() == model.get_params()
        assert again.predict(X).shape == y.shape
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("classes", "class_weight"),
    [
        ([0, 1], {0: 1, 1: 5}),
        ([0, 1], {np.int64(0): np.float32(1), np.int64(1): np.int32(5)}),
        ([False, True], {False: 1, True: 5}),
        ([1.0, 2.0], {2.0: 5}),
        (["no", "yes"], {"yes": 5}),
        (["0", "1"], {"1": 5}),
    ],
)
def test_class_weights_come_back_as_they_were(classes, class_weight, tmp_path):
    from sklearn.base import clone

    X = np.random.default_rng(0).normal(size=(40, 3))
    y = np.asarray(classes)[np.arange(40) % 2]
    model = lssvm.LSSVMClassifier(C=7, class_weight=class_weight, image_shape=np.array([1, 3]))
    model.fit(X, y).save(tmp_path / "m.lssvm")
    again = lssvm.load(tmp_path / "m.lssvm")
    assert again.class_weight == class_weight
    assert again.C == 7 and again.image_shape == (1, 3)
    refitted = clone(again).fit(X, y)
    np.testing.assert_array_equal(refitted.decision_function(X), model.decision_function(X))


def test_a_parameter_that_cannot_be_written_takes_no_other_with_it(tmp_path):
    model = lssvm.LSSVMRegressor(C=7, random_state=np.random.RandomState(0))
    model.fit([[0.0], [1.0]], [0.0, 1.0]).save(tmp_path / "m.lssvm")
    again = lssvm.load(tmp_path / "m.lssvm")
    assert again.C == 7 and again.random_state is None


def test_bad_files_are_refused(tmp_path):
    path = tmp_path / "no.lssvm"
    with pytest.raises(FileNotFoundError):
        lssvm.load(path)
    path.write_text("no model")
    with pytest.raises(ValueError, match="not a model"):
        lssvm.load(path)
    model = lssvm.LSSVMRegressor().fit([[0.0], [1.0]], [0.0, 1.0])
    with pytest.raises(ValueError, match="does not exist"):
        model.save(tmp_path / "missing" / "m.lssvm")


KERNELS = [
    ("linear", {}),
    ("poly", {"degree": 3, "coef0": 1.0}),
    ("rbf", {}),
    ("laplacian", {"gamma": 0.05}),
    ("sigmoid", {"gamma": 0.01}),
]
STEPS = [
    None, "center,unit-norm", "standardize", "min-max", "fourier",
    "fourier:exponent=1:transform=2d", "window,fourier:order=rows", "window:c=0.1,min-max",
    "window:first=0,fourier:transform=1d-channel",
]  # fmt: skip


def onnx_outputs(path, X):
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, {"X": X})


# The graph computes in double precision, and so does a model in f64. In f32 the core's own
# rounding of a score grows with C: 3e-6 with a linear kernel and C = 0.1, 4e-4 with 10.
SMALL_C = {"linear": 0.1, "poly": 0.1}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("kernel", "parameters"), KERNELS)
def test_onnx_of_every_kernel(kernel, parameters, dtype, tmp_path, digits):
    X, y, X_test, _ = (array.astype(dtype) if array.dtype.kind == "f" else array for array in digits)
    single = dtype == "float32"
    tolerance = {"rtol": 0, "atol": 1e-5 if single else 1e-9}
    c = SMALL_C.get(kernel, 1) if single else 1000
    parameters = parameters | {"kernel": kernel, "C": c}
    path = str(tmp_path / "m.onnx")
    model = lssvm.LSSVMClassifier(**parameters).fit(X, y)
    model.to_onnx(path)
    label, scores, p = onnx_outputs(path, X_test)
    assert scores.dtype == p.dtype == dtype
    np.testing.assert_allclose(scores, model.decision_function(X_test), **tolerance)
    np.testing.assert_allclose(p, model.predict_proba(X_test), **tolerance)
    np.testing.assert_array_equal(label, model.predict(X_test))
    regressor = lssvm.LSSVMRegressor(**parameters).fit(X, X[:, 20:22])
    regressor.to_onnx(path)
    np.testing.assert_allclose(onnx_outputs(path, X_test)[0], regressor.predict(X_test), **tolerance)


def test_onnx_has_no_rounding_of_its_own(tmp_path, digits):
    from sklearn.metrics.pairwise import pairwise_kernels

    X, y, X_test, _ = digits
    X, X_test = X.astype(np.float32), X_test.astype(np.float32)
    path = str(tmp_path / "m.onnx")
    for kernel, parameters in KERNELS:
        parameters = {"gamma": 0.05} | parameters
        model = lssvm.LSSVMClassifier(C=10, kernel=kernel, **parameters).fit(X, y)
        model.to_onnx(path)
        if kernel == "linear":
            parameters = {}
        elif kernel == "sigmoid":
            parameters["coef0"] = 0.0
        rows = model.support_vectors_.astype(float)
        omega = pairwise_kernels(X_test.astype(float), rows, metric=kernel, **parameters)
        expected = omega @ model.dual_coef_.T.astype(float) + model.intercept_
        np.testing.assert_allclose(onnx_outputs(path, X_test)[1], expected, rtol=1e-6, atol=1e-6)


def test_onnx_of_calibrated_probabilities(tmp_path, digits):
    X, y, X_test, _ = digits
    path = str(tmp_path / "m.onnx")
    for labels in (y, y == 3):
        model = lssvm.LSSVMClassifier(C=10, leave_one_out=True).fit(X, labels)
        model.to_onnx(path)
        label, scores, p = onnx_outputs(path, X_test)
        np.testing.assert_allclose(p, model.predict_proba(X_test), atol=1e-9)
        assert p.max() > 0.99 and scores.shape == p.shape


def test_a_graph_that_would_be_too_large_is_refused(tmp_path, monkeypatch):
    from lssvm import _onnx

    model = lssvm.LSSVMRegressor().fit(np.eye(50), np.arange(50.0))
    monkeypatch.setattr(_onnx, "_MOST_BYTES", 50 * 50 * 8)
    with pytest.raises(ValueError, match="at most 2 GB"):
        model.to_onnx(tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()


@pytest.mark.parametrize("steps", STEPS)
def test_onnx_of_every_step(steps, tmp_path, digits):
    X, y, X_test, _ = digits
    path = str(tmp_path / "m.onnx")
    model = lssvm.LSSVMClassifier(C=10, preprocess=steps, image_shape=(8, 8))
    model.fit(X, np.array([f"digit {label}" for label in y])).to_onnx(path)
    label, scores, p = onnx_outputs(path, X_test)
    np.testing.assert_allclose(scores, model.decision_function(X_test), atol=1e-5)
    assert label.tolist() == model.predict(X_test).tolist()


def test_a_report_is_written(tmp_path, digits):
    X, y, X_test, y_test = digits
    model = lssvm.LSSVMClassifier(C=10).fit(X, y)
    path = tmp_path / "page.html"
    for case in (model, pickle.loads(pickle.dumps(model))):
        lssvm.report(case, X_test, y_test, path, name="digits", image_shape=(1, 8, 8))
        text = path.read_text()
        assert "classified wrong" in text and "digits" in text
        assert json.loads(path.with_suffix(".json").read_text())
    with pytest.raises(ValueError, match="does not know"):
        lssvm.report(model, X_test[:2], [0, 77], path)
