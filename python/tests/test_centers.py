"""Models of some rows, fitted on all; arrays that stay in their files; images seen in other ways."""

import pickle
import sys
import threading
import warnings

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

import lssvm


def centred_solution(X, Y, centers, c, gamma, weights):
    """What the method minimises, by normal equations written out: weights and bias."""
    w = np.ones(len(X)) if weights is None else weights
    K = rbf_kernel(X, X[centers], gamma=gamma)
    omega = rbf_kernel(X[centers], gamma=gamma)
    p = len(centers)
    A = np.zeros((p + 1, p + 1))
    A[:p, :p] = K.T @ (w[:, None] * K) + omega / c
    A[:p, p] = A[p, :p] = K.T @ w
    A[p, p] = w.sum()
    right = np.vstack([K.T @ (w[:, None] * Y), w @ Y])
    solution = np.linalg.lstsq(A, right, rcond=None)[0]
    return solution[:p], solution[p]


def surface(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, 2))
    return X, np.column_stack([np.sin(2 * X[:, 0]), X[:, 0] * X[:, 1]])


@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian"])
def test_with_every_row_a_centre_it_is_the_exact_machine(kernel, digits):
    X, y, X_test, _ = digits
    X, y = X[:300], y[:300]
    parameters = {"C": 10, "kernel": kernel, "random_state": 0}
    exact = lssvm.LSSVMClassifier(method="exact", **parameters).fit(X, y)
    model = lssvm.LSSVMClassifier(method="centers", n_centers=300, tol=1e-10, **parameters)
    model.fit(X, y)
    np.testing.assert_array_equal(model.support_, np.arange(300))
    np.testing.assert_allclose(
        model.decision_function(X_test), exact.decision_function(X_test), rtol=0, atol=1e-6
    )
    np.testing.assert_array_equal(model.predict(X_test), exact.predict(X_test))


@pytest.mark.parametrize("weighted", [False, True])
def test_few_centres_are_the_least_squares_of_all_rows(weighted):
    X, y = surface(400)
    weights = np.random.default_rng(1).uniform(0.2, 3, 400) if weighted else None
    model = lssvm.LSSVMRegressor(
        C=5, gamma=1.0, method="centers", n_centers=20, tol=1e-10, random_state=0
    ).fit(X, y, sample_weight=weights)
    assert model.support_.shape == (20,) and model.dual_coef_.shape == (2, 20)
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    a, b = centred_solution(X, y, model.support_, 5, 1.0, weights)
    new = surface(100, 2)[0]
    expected = rbf_kernel(new, X[model.support_], gamma=1.0) @ a + b
    np.testing.assert_allclose(model.predict(new), expected, rtol=0, atol=1e-6)


def test_a_row_of_weight_2_is_two_rows():
    # The centres are drawn among the rows, so that all of them are centres here.
    X, y = surface(60)
    parameters = {"C": 1, "gamma": 1.0, "method": "centers", "tol": 1e-8}
    weights = np.where(np.arange(60) < 30, 2.0, 1.0)
    twice = np.r_[np.arange(60), np.arange(30)]
    one = lssvm.LSSVMRegressor(n_centers=60, **parameters).fit(X, y, sample_weight=weights)
    two = lssvm.LSSVMRegressor(n_centers=90, **parameters).fit(X[twice], y[twice])
    np.testing.assert_allclose(one.predict(X), two.predict(X), atol=1e-5)


def test_few_centres_do_well(digits):
    X, y, X_test, y_test = digits
    scores = [
        lssvm.LSSVMClassifier(C=100, method="centers", n_centers=p, random_state=0)
        .fit(X, y)
        .score(X_test, y_test)
        for p in (10, 300)
    ]
    assert scores[0] > 0.5 and scores[1] > 0.93, scores


def test_the_number_of_centres_is_chosen_where_it_is_not_given(digits, tmp_path):
    X, y, X_test, _ = digits
    model = lssvm.LSSVMClassifier(method="centers", random_state=0, early_stopping=True).fit(X, y)
    assert 100 <= len(model.support_) <= len(X)
    assert np.isfinite(model.history_["error"]).all()
    model.save(tmp_path / "m.lssvm")
    for again in (lssvm.load(tmp_path / "m.lssvm"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict_proba(X_test), model.predict_proba(X_test))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_centers": 0}, "n_centers = 0"),
        ({"n_centers": 41}, "from 1 to 40"),
        ({"n_centers": 2.5}, "n_centers = 2.5"),
        ({"kernel": "sigmoid"}, "positive definite"),
        ({"kernel": "precomputed"}, "method = 'centers'"),
        ({"kernel": rbf_kernel}, "method = 'centers'"),
    ],
)
def test_what_centres_cannot_be(change, message):
    X = np.random.default_rng(0).normal(size=(40, 40))
    with pytest.raises(ValueError, match=message):
        lssvm.LSSVMRegressor(method="centers", **change).fit(X, X[:, 0])


# ----- arrays in files


def private_memory():
    """Bytes of this process that are in no file."""
    with open("/proc/self/status") as status:
        lines = dict(line.split(":", 1) for line in status)
    return 1024 * int(lines["RssAnon"].split()[0])


class Highest:
    """The most private memory while it is open, above what there was before."""

    def __enter__(self):
        self.start, self.bytes, self._stop = private_memory(), 0, threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self):
        while not self._stop.wait(0.002):
            self.bytes = max(self.bytes, private_memory() - self.start)

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc")
@pytest.mark.parametrize("early_stopping", [False, True])
def test_an_array_in_a_file_stays_there(early_stopping, tmp_path):
    # 160 MB of rows.
    n, features = 400_000, 50
    X = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float64, (n, features))
    rng = np.random.default_rng(0)
    for rows in np.array_split(np.arange(n), 20):
        X[rows] = rng.normal(size=(len(rows), features))
    y = X[:, 0] + X[:, 1] ** 2
    X.flush()
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = lssvm.LSSVMRegressor(
        gamma=0.01, method="centers", n_centers=60, memory="150M", max_iter=3, tol=0,
        early_stopping=early_stopping, validation_fraction=0.001, random_state=0,
    )  # fmt: skip
    with Highest() as highest, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predicted = model.fit(X, y).predict(X)
    assert 0 < highest.bytes < X.nbytes / 2, highest.bytes
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    np.testing.assert_array_equal(predicted[123_456:123_460], model.predict(X[123_456:123_460]))


def test_it_is_the_same_fit_wherever_the_rows_are(tmp_path):
    X, y = surface(3000)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    parameters = {"method": "centers", "n_centers": 30, "random_state": 0, "early_stopping": True}
    expected = lssvm.LSSVMRegressor(**parameters).fit(X, y).predict(X)
    for other in (mapped, np.asfortranarray(X), np.hstack([X, X])[:, :2]):
        np.testing.assert_array_equal(lssvm.LSSVMRegressor(**parameters).fit(other, y).predict(X), expected)


def test_a_value_too_large_for_the_precision_is_named():
    X, y = surface(50)
    X[7, 1] = 1e300
    with pytest.raises(ValueError, match="row 8: feature 2 is not finite as f32.*precision='f64'"):
        lssvm.LSSVMRegressor(precision="f32").fit(X, y)


# ----- images seen in other ways


def shifted(images):
    """All images, and each also moved by a pixel in eight directions."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)), mode="edge")
    size = images.shape[1]
    ways = [(1, 1)] + [(i, j) for i in range(3) for j in range(3) if (i, j) != (1, 1)]
    return np.concatenate([padded[:, i : i + size, j : j + size] for i, j in ways])


def test_images_are_learned_in_all_ways(digits):
    X, y, X_test, _ = digits
    X, y = X[:100], y[:100]
    parameters = {"C": 10, "gamma": 0.05, "method": "exact"}
    model = lssvm.LSSVMClassifier(augment="shift=1", image_shape=(8, 8), **parameters).fit(X, y)
    by_hand = lssvm.LSSVMClassifier(**parameters)
    by_hand.fit(shifted(X.reshape(-1, 8, 8)).reshape(-1, 64), np.tile(y, 9))
    np.testing.assert_allclose(
        model.decision_function(X_test), by_hand.decision_function(X_test), atol=1e-8
    )
    # Rows of X, nine ways of each.
    np.testing.assert_array_equal(model.support_, np.repeat(np.arange(100), 9))
    assert model.dual_coef_.shape == (10, 900)


def test_they_have_the_weights_of_their_rows(digits):
    X, y, X_test, _ = digits
    X, y = X[:80], y[:80]
    weights = np.where(np.arange(80) < 10, 0.0, np.linspace(0.5, 2, 80))
    parameters = {"C": 10, "gamma": 0.05, "augment": "flip", "image_shape": (1, 8, 8)}
    model = lssvm.LSSVMClassifier(**parameters).fit(X, y, sample_weight=weights)
    assert model.support_.min() == 10
    mirrored = X.reshape(-1, 8, 8)[:, :, ::-1].reshape(-1, 64)
    by_hand = lssvm.LSSVMClassifier(C=10, gamma=0.05)
    by_hand.fit(np.r_[X, mirrored], np.r_[y, y], sample_weight=np.r_[weights, weights])
    np.testing.assert_allclose(
        model.decision_function(X_test), by_hand.decision_function(X_test), atol=1e-8
    )


def test_images_that_are_kept_apart_are_seen_as_they_are(digits):
    X, y, X_test, y_test = digits
    model = lssvm.LSSVMClassifier(
        C=10, method="centers", n_centers=200, augment="shift=1", image_shape=(8, 8),
        early_stopping=True, random_state=0,
    ).fit(X, y)  # fmt: skip
    assert model.score(X_test, y_test) > 0.93
    assert set(model.support_) <= set(range(len(X)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"image_shape": None}, "image_shape="),
        ({"image_shape": (8, 9)}, "64 features"),
        ({"augment": "shift=99"}, "from 1 to 16"),
        ({"augment": "paint"}, "augment"),
        ({"leave_one_out": True}, "early_stopping"),
    ],
)
def test_what_cannot_be_seen(change, message, digits):
    parameters = {"augment": "shift=1", "image_shape": (8, 8)} | change
    with pytest.raises(ValueError, match=message):
        lssvm.LSSVMClassifier(**parameters).fit(digits[0][:50], digits[1][:50])


def test_a_search_fits_what_it_found_in_all_ways(digits):
    X, y, _, _ = digits
    estimator = lssvm.LSSVMClassifier(augment="flip", image_shape=(8, 8), time_limit=60)
    space = {"kernels": ["rbf"], "gamma": [1.0], "preprocess": ["none"], "c": [10.0]}
    search = lssvm.LSSVMSearchCV(estimator, space=space).fit(X[:200], y[:200])
    assert len(search.best_estimator_.support_) == 400
