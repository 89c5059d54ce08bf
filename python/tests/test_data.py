"""Arrays and frames of every kind, and files."""

import pickle

import numpy as np
import pytest
import scipy.sparse

import lssvm


def fitted(X, y=None, **parameters):
    y = np.arange(len(X)) % 2 if y is None else y
    return lssvm.LSSVMClassifier(gamma=0.5, random_state=0, **parameters).fit(X, y)


X = np.random.default_rng(0).normal(size=(40, 6))


def test_order_and_strides_make_no_difference():
    expected = fitted(X).decision_function(X)
    wide = np.zeros((80, 12))
    wide[::2, ::2] = X
    backwards = np.ascontiguousarray(X[::-1])[::-1]
    for other in (np.asfortranarray(X), wide[::2, ::2], backwards, X.tolist()):
        np.testing.assert_array_equal(fitted(other).decision_function(other), expected)


def test_single_precision_stays_single():
    model = fitted(X.astype(np.float32))
    assert model.dual_coef_.dtype == np.float32
    assert model.decision_function(X.astype(np.float32)).dtype == np.float32
    assert fitted(X).dual_coef_.dtype == np.float64
    np.testing.assert_allclose(
        fitted(X.astype(np.float32)).decision_function(X), fitted(X).decision_function(X), atol=1e-4
    )


def test_sparse_rows():
    sparse = np.where(np.abs(X) > 1, X, 0)
    expected = fitted(sparse).decision_function(sparse)
    for form in (scipy.sparse.csr_matrix, scipy.sparse.csc_array, scipy.sparse.coo_array):
        model = fitted(form(sparse), np.arange(40) % 2)
        np.testing.assert_array_equal(model.decision_function(form(sparse)), expected)


def test_rows_of_mostly_zeros_stay_sparse():
    rng = np.random.default_rng(3)
    words = scipy.sparse.random_array((80, 3_000_000), density=2e-6, rng=rng, format="csr")
    classes = np.arange(80) % 2
    # A column that tells the classes apart.
    words = scipy.sparse.hstack([classes[:, None] + 1.0, words], format="csr")
    for dtype in (np.float32, np.float64):
        for kernel in ("rbf", "laplacian", "poly"):
            X = words.astype(dtype)
            model = lssvm.LSSVMClassifier(
                C=100, kernel=kernel, gamma=0.5, preprocess="max-abs", memory="400M"
            )
            # Dense they would take 960 MB or more.
            model.fit(X, classes)
            assert model.score(X, classes) == 1
            again = pickle.loads(pickle.dumps(model))
            np.testing.assert_array_equal(
                again.decision_function(X), model.decision_function(X)
            )
            few = X[:, :3000]
            narrow = scipy.sparse.csr_array(few)
            small = lssvm.LSSVMClassifier(C=100, kernel=kernel, gamma=0.5)
            scores = small.fit(narrow, classes).decision_function(narrow)
            dense = small.fit(few.toarray(), classes).decision_function(few.toarray())
            np.testing.assert_allclose(scores, dense, atol=1e-4 if dtype == np.float32 else 1e-10)


def test_sparse_rows_in_any_order_are_the_same_rows():
    X = scipy.sparse.csr_array(
        (np.array([2.0, 1.0, 3.0, 4.0]), np.array([40, 3, 7, 7]), np.array([0, 2, 4])),
        shape=(2, 100),
    )
    assert not X.has_canonical_format
    expected = X.toarray()
    model = lssvm.LSSVMRegressor().fit(X, [1.0, 2.0])
    np.testing.assert_allclose(
        model.predict(X), lssvm.LSSVMRegressor().fit(expected, [1.0, 2.0]).predict(expected)
    )
    assert not X.has_canonical_format, "X is left as it was"


def test_frames_keep_their_names():
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    names = [f"feature {i}" for i in range(6)]
    expected = fitted(X).decision_function(X)
    for frame in (pandas.DataFrame(X, columns=names), polars.DataFrame(X, schema=names)):
        model = fitted(frame)
        assert list(model.feature_names_in_) == names
        np.testing.assert_array_equal(model.decision_function(frame), expected)
    wrong = pandas.DataFrame(X, columns=names[::-1])
    with pytest.raises(ValueError, match="feature names"):
        model.predict(wrong)


@pytest.mark.parametrize(
    "classes",
    [[3, 7], ["no", "yes"], [False, True], [1.0, 2.0], ["10", "9"], np.array(["a", "b"], dtype=object)],
)
def test_labels_come_back_as_they_were(classes, tmp_path):
    y = np.asarray(classes)[np.arange(40) % 2]
    model = fitted(X, y)
    predicted = model.predict(X)
    assert set(predicted.tolist()) <= set(y.tolist())
    model.save(tmp_path / "m.lssvm")
    again = lssvm.load(tmp_path / "m.lssvm").predict(X)
    assert again.tolist() == predicted.tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"C": -1}, "C = -1"),
        ({"C": "much"}, "C = 'much'"),
        ({"C": float("nan")}, "C = nan: must be finite"),
        ({"tol": float("inf")}, "tol = inf: must be finite"),
        ({"kernel": "cubic"}, "kernel = 'cubic'"),
        ({"method": "magic"}, "magic"),
        ({"method": "mp", "block_size": 100}, "block_size = 100"),
        ({"max_iter": 0}, "max_iter = 0"),
        ({"max_iter": 1.5}, "max_iter = 1.5"),
        ({"tol": -1}, "tol = -1"),
        ({"preprocess": "window"}, r"give image_shape=\(28, 28\) \(with your height and width\)"),
        ({"precision": "f16"}, "precision"),
        ({"memory": "lots"}, "memory"),
        ({"preprocess": "polish"}, "polish"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"early_stopping": True, "kernel": "precomputed"}, "early_stopping"),
        ({"preprocess": "standardize", "kernel": "precomputed"}, "preprocess"),
        ({"image_shape": (5, 8), "kernel": "precomputed"}, "image_shape"),
    ],
)
def test_a_wrong_parameter_is_named(change, message):
    rows = np.eye(40) if change.get("kernel") == "precomputed" else X
    with pytest.raises(ValueError, match=message):
        fitted(rows, **change)


def test_memory_that_does_not_suffice_is_said_before_work():
    with pytest.raises(MemoryError, match="memory budget.*or raise memory$"):
        fitted(np.zeros((20_000, 2)) + np.arange(20_000)[:, None], method="exact", memory="50M")


def test_errors_name_what_the_caller_wrote():
    with pytest.raises(ValueError, match="method = nope: the methods are auto, exact.*kaczmarz-mp$"):
        lssvm.LSSVMRegressor(method="nope").fit(X, X[:, 0])
    with pytest.raises(ValueError, match="only 1 class in the data, 3.0; "):
        lssvm.LSSVMClassifier().fit(X, np.full(len(X), 3.0))


def test_an_iteration_too_few_is_a_warning():
    from sklearn.exceptions import ConvergenceWarning

    y = np.random.default_rng(1).normal(size=40)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        lssvm.LSSVMRegressor(method="pcg", tol=1e-12, max_iter=1, C=1e6).fit(X, y)


def test_the_warning_can_do_without_a_residual():
    from sklearn.exceptions import ConvergenceWarning

    told = {
        "config": {"method": "gauss-seidel"},
        "stopped": "iterations",
        "iterations": 4,
        "relative_residual": None,
    }
    with pytest.warns(ConvergenceWarning, match="a relative residual that is unknown"):
        lssvm.LSSVMRegressor()._warn(told)


def test_reading_a_folder_with_a_test_part():
    from conftest import ROOT

    mnist = lssvm.load_dataset(ROOT / "data" / "mnist", max_rows=500)
    assert mnist.data.shape == (500, 784) and mnist.data.dtype == np.float32
    assert mnist.image_shape == (1, 28, 28)
    assert mnist.test.data.shape == (500, 784)
    assert mnist.target.dtype.kind == "i"
    model = lssvm.LSSVMClassifier(
        C=1e4, kernel="poly", degree=4, gamma=1, preprocess="center,unit-norm"
    )
    assert model.fit(mnist.data, mnist.target).score(mnist.test.data, mnist.test.target) > 0.8


def test_reading_tables(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,w,y\n1,2,1,0.5\n3,4,2,1.5\n")
    table = lssvm.load_dataset(path, weights="w", dtype=np.float64)
    assert table.data.tolist() == [[1, 2], [3, 4]]
    assert table.target.tolist() == [0.5, 1.5]
    assert table.sample_weight.tolist() == [1, 2]
    assert table.feature_names == ["a", "b"] and table.target_names == ["y"]
    both = lssvm.load_dataset(path, label=["w", "y"])
    assert both.target.shape == (2, 2)
    with pytest.raises(FileNotFoundError, match="missing.csv"):
        lssvm.load_dataset(tmp_path / "missing.csv")
    path.write_text("a,b\n1,x\n2,\n")
    with pytest.raises(ValueError, match="line 3"):
        lssvm.load_dataset(path)


def test_text_labels_of_arrays(tmp_path):
    labels = np.array(["été", "hiver", "été"])
    np.savez(tmp_path / "d.npz", X=np.eye(3), y=labels)
    np.testing.assert_array_equal(lssvm.load_dataset(tmp_path / "d.npz").target, labels)
    np.save(tmp_path / "X.npy", np.eye(3))
    np.save(tmp_path / "y.npy", labels.astype(object), allow_pickle=True)
    with pytest.raises(ValueError, match="Python objects"):
        lssvm.load_dataset(tmp_path / "X.npy")
