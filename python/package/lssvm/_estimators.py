"""The estimators: what scikit-learn asks of one, on the Rust core."""

from __future__ import annotations

import json
import os
import warnings
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_array,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from . import _lssvm
from ._dataset import class_array, precision_of
from ._onnx import write_onnx
from ._progress import Progress

_KERNELS = ("linear", "poly", "rbf", "laplacian", "sigmoid")

# Where a model keeps what Python wants to find again.
_PARAMETERS_NOTE = "python-parameters"
_CLASSES_NOTE = "python-classes"
_DIMENSIONS_NOTE = "python-target-dimensions"

# Methods that know how far they are from the solution, and aim at it.
_AIMING = ("pcg", "gauss-seidel")


class _BaseLSSVM(BaseEstimator):
    """What classifier and regressor share."""

    # What the core is told to learn, and what it made.
    _task: str
    _model: Any
    _report: Any

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        method: str = "auto",
        block_size: int | None = None,
        tol: float = 1e-3,
        max_iter: int = -1,
        preprocess: str | None = None,
        image_shape: Any = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_averages: int = 1,
        leave_one_out: bool = False,
        memory: Any = None,
        precision: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.method = method
        self.block_size = block_size
        self.tol = tol
        self.max_iter = max_iter
        self.preprocess = preprocess
        self.image_shape = image_shape
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_averages = n_averages
        self.leave_one_out = leave_one_out
        self.memory = memory
        self.precision = precision
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # ----- fitting

    def _given_kernel(self) -> bool:
        """Whether the kernel matrix comes from outside."""
        return callable(self.kernel) or self.kernel == "precomputed"

    def _fit(self, X: Any, target: Any, classes: int, sample_weight: Any) -> None:
        """Fits rows that were validated; `target` as the core wants it."""
        rows: Any = slice(None)
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
            if np.any(weights < 0):
                raise ValueError("Negative values in data passed to `sample_weight`")
            if not np.any(weights > 0):
                raise ValueError("sample_weight: all weights are 0; give some row a weight")
            if np.any(weights == 0):
                # A row that counts for nothing is no training row.
                rows = np.flatnonzero(weights)
                weights = weights[rows]
        all_rows = np.arange(X.shape[0])[rows]
        config = self._config(X.dtype)
        progress = Progress() if self.verbose else None
        try:
            if self._given_kernel():
                self._fit_given(X, target, weights, all_rows, config, progress)
            else:
                self._fit_rows(X, target, classes, weights, all_rows, config, progress)
        finally:
            if progress:
                progress.close()
        told = json.loads(self._report.json())
        self.n_iter_ = max(int(told["iterations"]), 1)
        self.residual_ = told["relative_residual"]
        self.history_ = _history(told["history"])
        if self.leave_one_out:
            self.loo_scores_ = self._report.leave_one_out
        self._warn(told)

    def _fit_rows(
        self,
        X: Any,
        target: Any,
        classes: int,
        weights: Any,
        rows: Any,
        config: dict[str, Any],
        progress: Any,
    ) -> None:
        validation = None
        if self.early_stopping:
            within = np.arange(len(rows))
            within, apart = self._split(within, _select(target, rows), classes, config["seed"])
            validation = (_dense(X[rows[apart]]), _select(target, rows[apart]))
            weights = None if weights is None else weights[within]
            rows = rows[within]
        everything = len(rows) == X.shape[0]
        names = getattr(self, "feature_names_in_", None)
        self._model, self._report = _lssvm.fit(
            _dense(X if everything else X[rows]),
            target if everything else _select(target, rows),
            json.dumps(config),
            weights=weights,
            feature_names=None if names is None else [str(name) for name in names],
            validation=validation,
            notes=self._notes(),
            progress=progress,
        )
        self.support_ = rows[np.asarray(self._report.support)]
        self._take_over(self._model.weights, self._model.bias)

    def _fit_given(
        self, X: Any, target: Any, weights: Any, rows: Any, config: dict[str, Any], progress: Any
    ) -> None:
        for name, off in (("early_stopping", False), ("preprocess", None), ("image_shape", None)):
            if getattr(self, name) is not off and getattr(self, name) != off:
                raise ValueError(
                    f"{name}: needs a kernel that the core can compute; a precomputed one, or a "
                    f"function, knows nothing of it. Leave {name} at {off}"
                )
        everything = len(rows) == X.shape[0]
        self._X_fit = None
        if callable(self.kernel):
            self._X_fit = X if everything else X[rows]
            omega = self._evaluate(self._X_fit, self._X_fit)
        else:
            if X.shape[0] != X.shape[1]:
                raise ValueError(
                    f"a precomputed kernel matrix has as many rows as columns, and X has "
                    f"{X.shape[0]} x {X.shape[1]}"
                )
            omega = _dense(X if everything else X[np.ix_(rows, rows)])
        coefficients, bias, self._report = _lssvm.fit_kernel_matrix(
            omega,
            target if everything else _select(target, rows),
            json.dumps(config),
            weights=weights,
            progress=progress,
        )
        self._model = None
        self._coefficients, self._bias = coefficients, bias
        # The report does not outlast a pickle, and probabilities, intervals and sets must.
        self._scaling = json.loads(self._report.json()).get("scaling")
        self._conformal = self._report.conformal
        self.support_ = rows
        self._take_over(coefficients, bias)

    def _evaluate(self, X: Any, Z: Any) -> np.ndarray:
        """A kernel that was given as a function."""
        omega = check_array(self.kernel(X, Z), dtype=[np.float64, np.float32])
        if omega.shape != (X.shape[0], Z.shape[0]):
            raise ValueError(
                f"the kernel gave an array of shape {omega.shape} for {X.shape[0]} and "
                f"{Z.shape[0]} rows"
            )
        return omega

    def _split(
        self, rows: np.ndarray, target: Any, classes: int, seed: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows to learn from, and rows that choose the iteration."""
        stratify = None
        if classes:
            counts = np.bincount(target[1], minlength=classes)
            apart = self.validation_fraction * len(rows)
            if counts[counts > 0].min() >= 2 and apart >= classes:
                stratify = target[1]
        within, apart = train_test_split(
            rows, test_size=self.validation_fraction, random_state=seed, stratify=stratify
        )
        return np.sort(within), np.sort(apart)

    def _config(self, dtype: np.dtype[Any]) -> dict[str, Any]:
        """The settings, as the core names them."""
        if not self._given_kernel() and self.kernel not in _KERNELS:
            raise ValueError(
                f"kernel = {self.kernel!r}: must be one of {', '.join(_KERNELS)}, 'precomputed', "
                "or a function of two arrays"
            )
        if self.precision not in ("auto", "f32", "f64"):
            raise ValueError(f"precision = {self.precision!r}: must be 'auto', 'f32' or 'f64'")
        config = {
            "task": self._task,
            "c": _number("C", self.C),
            "degree": int(self.degree),
            "gamma": self.gamma if isinstance(self.gamma, str) else _number("gamma", self.gamma),
            "coef0": _number("coef0", self.coef0),
            "method": self.method,
            "tolerance": _number("tol", self.tol),
            "averages": int(self.n_averages),
            "loo": bool(self.leave_one_out),
            "preprocess": self.preprocess or "none",
            "threads": self._threads(),
            "precision": precision_of(dtype) if self.precision == "auto" else self.precision,
            "seed": self._seed(),
        }
        if not self._given_kernel():
            config["kernel"] = self.kernel
        if self.image_shape is not None:
            config["image-shape"] = _image_shape(self.image_shape)
        if self.block_size is not None:
            config["block-size"] = int(self.block_size)
        if self.max_iter is not None and self.max_iter != -1:
            config["iterations"] = int(self.max_iter)
        if self.memory is not None:
            is_number = isinstance(self.memory, Integral)
            config["memory"] = f"{int(self.memory)}B" if is_number else str(self.memory)
        return config

    def _seed(self) -> int:
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _threads(self) -> int:
        """All cores, unless told otherwise; a worker of joblib has its share."""
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        cores = cores or 1
        if self.n_jobs is None:
            share = os.environ.get("OMP_NUM_THREADS", "")
            return min(int(share), cores) if share.isdigit() and int(share) > 0 else cores
        if self.n_jobs == 0:
            raise ValueError("n_jobs = 0: must not be 0")
        return int(self.n_jobs) if self.n_jobs > 0 else max(cores + 1 + int(self.n_jobs), 1)

    def _warn(self, told: dict[str, Any]) -> None:
        method = told["config"]["method"]
        if method in _AIMING and told["stopped"] in ("iterations", "time"):
            residual = told["relative_residual"]
            if residual is None or residual > self.tol:
                size = "that is unknown" if residual is None else f"of {residual:.1e}"
                warnings.warn(
                    f"{method} made all {told['iterations']} iterations and has a relative "
                    f"residual {size}, where tol = {self.tol:g} was wanted; raise max_iter, "
                    "or tol, or lower C",
                    ConvergenceWarning,
                    stacklevel=4,
                )

    # ----- predicting

    def _scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(
            self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False
        )
        if self._model is not None:
            return self._model.decision_function(_dense(X), self._threads())
        if self._X_fit is not None:
            omega = self._evaluate(X, self._X_fit)
        else:
            omega = _dense(X[:, self.support_])
        return omega @ self._coefficients + self._bias

    def _thresholds(self, coverage: float) -> np.ndarray:
        """How far off the truth may be: for each output, or for all classes."""
        check_is_fitted(self)
        coverage = _number("coverage", coverage)
        if self._model is not None:
            return np.array(self._model.thresholds(coverage))
        if getattr(self, "_conformal", None) is None:
            raise ValueError(
                "this model does not know how far off it is on rows that it did not learn from, "
                "so that it has no intervals and no sets; fit it with leave_one_out=True"
            )
        return np.array(_lssvm.thresholds(self._conformal, coverage))

    @property
    def support_vectors_(self) -> np.ndarray:
        """The training rows of the model, after preprocessing."""
        return self._core("support_vectors_").support

    # ----- files

    def _core(self, what: str) -> Any:
        """The model of the core."""
        check_is_fitted(self)
        if self._model is None:
            raise ValueError(
                f"{what}: a model of a precomputed kernel, or of a kernel that is a function, "
                "has no training rows of its own; use a kernel that the core computes"
            )
        return self._model

    def _run_report(self) -> Any:
        return getattr(self, "_report", None)

    def _notes(self) -> dict[str, str]:
        """What :func:`load` wants to find again."""
        return {_PARAMETERS_NOTE: self._parameters_as_json()}

    def _parameters_as_json(self) -> str:
        """The parameters that can be written; the others come back as defaults."""
        kept = {}
        for name, value in self._parameters_to_write().items():
            try:
                kept[name] = json.loads(json.dumps(value, default=_plain))
            except TypeError:
                continue
        return json.dumps(kept)

    def _parameters_to_write(self) -> dict[str, Any]:
        return self.get_params(deep=False)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, for :func:`lssvm.load` and the program ``lssvm``.

        All of it or nothing: a file that was there before is replaced at the end.

        Parameters
        ----------
        path : str or path-like
            Where the model goes.
        """
        self._core("save").save(os.fspath(path))

    def to_onnx(self, path: str | os.PathLike[str]) -> None:
        """Write the model as an ONNX graph, for onnxruntime and others.

        The graph takes ``X`` (float, any number of rows, raw features) and gives
        ``label``, ``scores`` (one column a class) and ``probabilities`` for a classifier,
        ``variable`` for a regressor. Needs the package ``onnx``
        (``pip install lssvm[onnx]``). A graph has at most 2 GB, training rows included:
        about 680,000 rows of 784 features in ``f32``; a larger model is a ``ValueError``.

        Parameters
        ----------
        path : str or path-like
            Where the graph goes.
        """
        write_onnx(self._core("to_onnx"), getattr(self, "classes_", None), os.fspath(path))

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        # Times and curves of a run do not outlast the session.
        state.pop("_report", None)
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def _take_over(self, weights: np.ndarray, bias: np.ndarray) -> None:
        raise NotImplementedError


class LSSVMClassifier(ClassifierMixin, _BaseLSSVM):
    """Kernel least-squares support vector machine for classification.

    Fits, for each class, a function to 1 on the rows of the class and 0 on the others,
    with an exact bias, by one linear system in all training rows. The names of the
    parameters are those of :class:`sklearn.svm.SVC`.

    Parameters
    ----------
    C : float, default=1.0
        Regularisation: larger follows the training data more closely. The ridge that is
        added to the kernel matrix is 1/C.
    kernel : {"linear", "poly", "rbf", "laplacian", "sigmoid", "precomputed"} or callable, \
default="rbf"
        The kernel. A callable gets two arrays of rows and gives the matrix of kernel
        values; with "precomputed", ``X`` is that matrix.
    degree : int, default=3
        Power of the polynomial kernel.
    gamma : {"scale", "auto"} or float, default="scale"
        Kernel coefficient: 1 / (n_features * X.var()), 1 / n_features, or a number.
    coef0 : float, default=0.0
        Constant term of "poly" and "sigmoid".
    method : {"auto", "exact", "pcg", "gauss-seidel", "mp", "kaczmarz", "kaczmarz-mp", \
"nystrom"}, default="auto"
        How the system is solved; "auto" chooses by size and memory.
    block_size : int, default=None
        Rows of a block, for methods that work on blocks.
    tol : float, default=1e-3
        Relative residual at which iterative methods stop.
    max_iter : int, default=-1
        Most iterations; -1 for the method's own number.
    preprocess : str, default=None
        Steps that are fitted, saved with the model and applied before the kernel:
        "standardize", "min-max", "center,unit-norm", "fourier", with commas between.
    image_shape : (height, width) or (channels, height, width), default=None
        The shape of the image that a row is, for steps that need it.
    early_stopping : bool, default=False
        Keep rows apart, stop when their error no longer improves, and keep the best
        iteration.
    validation_fraction : float, default=0.1
        Share of the rows that ``early_stopping`` keeps apart.
    n_averages : int, default=1
        Runs of a block method with different seeds that are averaged.
    leave_one_out : bool, default=False
        Also compute what each training row would have been told by a model that never
        saw it, without training one; takes ``method="exact"``. It makes ``predict_proba``
        calibrated, and ``predict_set`` possible.
    memory : str or int, default=None
        Most memory the process may use: "8G", or a number of bytes. By default three
        quarters of what is free.
    precision : {"auto", "f32", "f64"}, default="auto"
        Number type of the computation; "auto" takes that of ``X``. Single precision is
        twice as fast and takes half the memory.
    random_state : int, RandomState instance or None, default=None
        Seed of everything random.
    n_jobs : int, default=None
        Number of threads; None for all cores (or ``OMP_NUM_THREADS``).
    verbose : int, default=0
        1 shows a progress bar.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes, which multiply those of their rows.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    dual_coef_ : ndarray of shape (n_classes, n_support) or (1, n_support)
        Weights of the training rows; one row of them for two classes.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        The bias of each class.
    support_ : ndarray of shape (n_support,)
        Which rows of ``X`` the model has.
    support_vectors_ : ndarray of shape (n_support, n_features_out)
        These rows, after preprocessing.
    loo_scores_ : ndarray of shape (n_learned, n_outputs)
        Scores of the training rows by models that never saw them, with
        ``leave_one_out``; one column a class. The rows are those of ``X``, in their
        order, without those of weight 0 and those that ``early_stopping`` kept apart.
    n_iter_ : int
        Iterations that were made.
    residual_ : float
        Relative residual of the linear system.
    history_ : dict of ndarray
        ``iteration``, ``seconds``, ``residual`` and ``error`` (validation error, with
        ``early_stopping``) of each iteration.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if ``X`` has them.

    See Also
    --------
    LSSVMRegressor : The same for numbers.
    sklearn.svm.SVC : The machine with a hinge loss.

    References
    ----------
    Suykens and Vandewalle, "Least squares support vector machine classifiers", 1999.
    Andrecut, "Randomized kernel methods for least-squares support vector machines", 2016.

    Examples
    --------
    >>> from lssvm import LSSVMClassifier
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = LSSVMClassifier(C=100).fit(X[:1000], y[:1000])
    >>> model.score(X[1000:], y[1000:]) > 0.95
    True
    """

    _task = "classification"

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        method: str = "auto",
        block_size: int | None = None,
        tol: float = 1e-3,
        max_iter: int = -1,
        preprocess: str | None = None,
        image_shape: Any = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_averages: int = 1,
        leave_one_out: bool = False,
        memory: Any = None,
        precision: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        class_weight: Any = None,
    ) -> None:
        super().__init__(
            C=C,
            kernel=kernel,
            degree=degree,
            gamma=gamma,
            coef0=coef0,
            method=method,
            block_size=block_size,
            tol=tol,
            max_iter=max_iter,
            preprocess=preprocess,
            image_shape=image_shape,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            n_averages=n_averages,
            leave_one_out=leave_one_out,
            memory=memory,
            precision=precision,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LSSVMClassifier:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows; with a precomputed kernel, their kernel matrix.
        y : array-like of shape (n_samples,)
            Their classes.
        sample_weight : array-like of shape (n_samples,), default=None
            What each row counts: a row of weight 2 is worth two equal rows.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], order=None
        )
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"there is only 1 class in the data, {self.classes_[0]!r}; classification needs "
                "at least 2 classes"
            )
        target = ([str(name) for name in self.classes_], codes.astype(np.uint32))
        if isinstance(self.class_weight, dict):
            named = self._named_class_weight()
            counts = np.array([named.get(str(name), 1.0) != 0 for name in self.classes_])
            if not counts.all():
                # Left out here, as rows of weight 0 are: the core would number the rest anew.
                own = _check_sample_weight(sample_weight, X, dtype=np.float64)
                sample_weight = own * counts[codes]
        self._fit(X, target, len(self.classes_), sample_weight)
        return self

    def _config(self, dtype: np.dtype[Any]) -> dict[str, Any]:
        config = super()._config(dtype)
        if isinstance(self.class_weight, str):
            config["class-weight"] = self.class_weight
        elif self.class_weight is not None:
            config["class-weight"] = self._named_class_weight()
        return config

    def _notes(self) -> dict[str, str]:
        return super()._notes() | {_CLASSES_NOTE: _kind(self.classes_)}

    def _parameters_to_write(self) -> dict[str, Any]:
        parameters = super()._parameters_to_write()
        if isinstance(self.class_weight, dict):
            parameters["class_weight"] = self._named_class_weight()
        return parameters

    def _named_class_weight(self) -> dict[str, float]:
        """Weights of classes by the names that the core knows them by."""
        known = dict(zip(self.classes_.tolist(), map(str, self.classes_), strict=True))
        unknown = [name for name in self.class_weight if name not in known]
        if unknown:
            raise ValueError(
                f"The classes, {unknown}, are not in class_weight's data: they are {list(known)}"
            )
        return {known[name]: float(weight) for name, weight in self.class_weight.items()}

    def _take_over(self, weights: np.ndarray, bias: np.ndarray) -> None:
        if len(self.classes_) == 2:
            self.dual_coef_ = (weights[:, 1] - weights[:, 0])[np.newaxis]
            self.intercept_ = np.array([bias[1] - bias[0]])
        else:
            self.dual_coef_, self.intercept_ = weights.T, np.asarray(bias)

    def _codes(self, y: Any) -> tuple[list[str], np.ndarray]:
        """Labels as the core wants them."""
        y = column_or_1d(y, warn=True)
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(f"y has classes that the model does not know: {list(unknown)}")
        names = [str(name) for name in self.classes_]
        return names, np.searchsorted(self.classes_, y).astype(np.uint32)

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores: the larger, the surer.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; with a precomputed kernel, their kernel values with the training rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            One column a class; for two classes the score of the second less that of the
            first.
        """
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Predict classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; with a precomputed kernel, their kernel values with the training rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            The class with the greatest score.
        """
        best = np.argmax(self._scores(X), axis=1)
        return self.classes_[best]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes.

        Calibrated with ``leave_one_out`` or ``early_stopping``, on rows that the model
        did not learn from. Else they are the softmax of the scores, which orders the
        classes as the scores do, but never goes near 1, since scores are fitted to 0
        and 1.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; with a precomputed kernel, their kernel values with the training rows.

        Returns
        -------
        p : ndarray of shape (n_samples, n_classes)
            They sum to 1.
        """
        scores = self._scores(X)
        if self._model is not None:
            return self._model.probabilities(scores)
        if self._scaling is not None:
            scores = self._scaling["slope"] * scores + np.array(self._scaling["offsets"])
        return _lssvm.softmax(scores)

    def predict_set(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Sets of classes that hold the true one as often as asked.

        Conformal prediction on rows that the model did not learn from: needs
        ``leave_one_out`` or ``early_stopping``. A class is in the set of a row if its
        probability is at least a threshold, which the true classes of a share
        ``coverage`` of those rows reach. A row unlike all classes may get an empty set;
        too few rows to promise this coverage give sets of all classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; with a precomputed kernel, their kernel values with the training rows.
        coverage : float, default=0.9
            The share of rows like the training rows whose true class shall be in their
            set; between 0 and 1.

        Returns
        -------
        sets : ndarray of bool, of shape (n_samples, n_classes)
            Whether the class of ``classes_`` is in the set.
        """
        largest = self._thresholds(coverage)[0]
        return 1 - self.predict_proba(X) <= largest


class LSSVMRegressor(RegressorMixin, _BaseLSSVM):
    """Kernel least-squares support vector machine for regression.

    Kernel ridge regression with a bias that is not penalised; one target or several.
    The names of the parameters are those of :class:`sklearn.svm.SVR`.

    Parameters
    ----------
    C : float, default=1.0
        Regularisation: larger follows the training data more closely. The ridge that is
        added to the kernel matrix is 1/C.
    kernel : {"linear", "poly", "rbf", "laplacian", "sigmoid", "precomputed"} or callable, \
default="rbf"
        The kernel. A callable gets two arrays of rows and gives the matrix of kernel
        values; with "precomputed", ``X`` is that matrix.
    degree : int, default=3
        Power of the polynomial kernel.
    gamma : {"scale", "auto"} or float, default="scale"
        Kernel coefficient: 1 / (n_features * X.var()), 1 / n_features, or a number.
    coef0 : float, default=0.0
        Constant term of "poly" and "sigmoid".
    method : {"auto", "exact", "pcg", "gauss-seidel", "mp", "kaczmarz", "kaczmarz-mp", \
"nystrom"}, default="auto"
        How the system is solved; "auto" chooses by size and memory.
    block_size : int, default=None
        Rows of a block, for methods that work on blocks.
    tol : float, default=1e-3
        Relative residual at which iterative methods stop.
    max_iter : int, default=-1
        Most iterations; -1 for the method's own number.
    preprocess : str, default=None
        Steps that are fitted, saved with the model and applied before the kernel.
    image_shape : (height, width) or (channels, height, width), default=None
        The shape of the image that a row is, for steps that need it.
    early_stopping : bool, default=False
        Keep rows apart, stop when their error no longer improves, and keep the best
        iteration.
    validation_fraction : float, default=0.1
        Share of the rows that ``early_stopping`` keeps apart.
    n_averages : int, default=1
        Runs of a block method with different seeds that are averaged.
    leave_one_out : bool, default=False
        Also compute what each training row would have been told by a model that never
        saw it, without training one; takes ``method="exact"``. It makes
        ``predict_interval`` possible.
    memory : str or int, default=None
        Most memory the process may use: "8G", or a number of bytes.
    precision : {"auto", "f32", "f64"}, default="auto"
        Number type of the computation; "auto" takes that of ``X``.
    random_state : int, RandomState instance or None, default=None
        Seed of everything random.
    n_jobs : int, default=None
        Number of threads; None for all cores (or ``OMP_NUM_THREADS``).
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_outputs, n_support)
        Weights of the training rows.
    intercept_ : ndarray of shape (n_outputs,)
        The bias of each output.
    support_ : ndarray of shape (n_support,)
        Which rows of ``X`` the model has.
    support_vectors_ : ndarray of shape (n_support, n_features_out)
        These rows, after preprocessing.
    loo_scores_ : ndarray of shape (n_learned, n_outputs)
        Scores of the training rows by models that never saw them, with
        ``leave_one_out``; one column an output. The rows are those of ``X``, in their
        order, without those of weight 0 and those that ``early_stopping`` kept apart.
    n_iter_ : int
        Iterations that were made.
    residual_ : float
        Relative residual of the linear system.
    history_ : dict of ndarray
        ``iteration``, ``seconds``, ``residual`` and ``error`` of each iteration.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if ``X`` has them.

    See Also
    --------
    LSSVMClassifier : The same for classes.
    sklearn.kernel_ridge.KernelRidge : The same without a bias.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVMRegressor
    >>> X = np.linspace(0, 6, 50)[:, np.newaxis]
    >>> model = LSSVMRegressor(C=1000).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(model.predict([[1.0]])[0] - np.sin(1.0)) < 0.01)
    True
    """

    _task = "regression"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LSSVMRegressor:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows; with a precomputed kernel, their kernel matrix.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their values.
        sample_weight : array-like of shape (n_samples,), default=None
            What each row counts: a row of weight 2 is worth two equal rows.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order=None,
            multi_output=True,
            y_numeric=True,
        )
        self._one_column = y.ndim == 1
        values = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        self._fit(X, values, 0, sample_weight)
        return self

    def _notes(self) -> dict[str, str]:
        return super()._notes() | {_DIMENSIONS_NOTE: "1" if self._one_column else "2"}

    def _take_over(self, weights: np.ndarray, bias: np.ndarray) -> None:
        self.dual_coef_, self.intercept_ = weights.T, np.asarray(bias)

    def predict(self, X: Any) -> np.ndarray:
        """Predict values.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; with a precomputed kernel, their kernel values with the training rows.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            The values.
        """
        scores = self._scores(X)
        return scores[:, 0] if self._one_column else scores

    def predict_interval(
        self, X: Any, coverage: float = 0.9
    ) -> tuple[np.ndarray, np.ndarray]:
        """Intervals that hold the true values as often as asked.

        Conformal prediction on rows that the model did not learn from: needs
        ``leave_one_out`` or ``early_stopping``. Its ends are the predicted value less and
        plus an absolute error that a share ``coverage`` of those rows does not exceed; of
        several outputs each for itself. Too few rows to promise this coverage give
        infinite intervals.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; with a precomputed kernel, their kernel values with the training rows.
        coverage : float, default=0.9
            The share of rows like the training rows whose true value shall be in its
            interval; between 0 and 1.

        Returns
        -------
        lower, upper : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            The ends of the intervals.
        """
        margins = self._thresholds(coverage)
        values = self._scores(X).astype(np.float64)
        lower, upper = values - margins, values + margins
        return (lower[:, 0], upper[:, 0]) if self._one_column else (lower, upper)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def load(path: str | os.PathLike[str]) -> LSSVMClassifier | LSSVMRegressor:
    """Load a model that was saved by :meth:`LSSVMClassifier.save` or the program ``lssvm``.

    Predictions are those of the program, to the last bit on the same machine.

    Parameters
    ----------
    path : str or path-like
        The model file.

    Returns
    -------
    model : LSSVMClassifier or LSSVMRegressor
        A fitted estimator.

    Examples
    --------
    >>> import os, tempfile, lssvm
    >>> path = os.path.join(tempfile.mkdtemp(), "m.lssvm")
    >>> lssvm.LSSVMRegressor(C=10).fit([[0.0], [1.0]], [0.0, 1.0]).save(path)
    >>> lssvm.load(path)
    LSSVMRegressor(C=10)
    """
    core = _lssvm.Model.load(os.fspath(path))
    told = json.loads(core.description)
    outputs, config, notes = told["outputs"], told["config"], told.get("notes", {})
    kind = LSSVMClassifier if outputs["kind"] == "classes" else LSSVMRegressor
    parameters = json.loads(notes.get(_PARAMETERS_NOTE, "null"))
    if parameters is None:
        parameters = _parameters(config, kind)
    if parameters.get("image_shape") is not None:
        parameters["image_shape"] = tuple(parameters["image_shape"])
    model = kind(**parameters)
    model._model = core
    model._X_fit = None
    model.n_features_in_ = told["input"]["n_features"]
    names = told["input"]["feature_names"]
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    if isinstance(model, LSSVMClassifier):
        model.classes_ = class_array(outputs["names"], notes.get(_CLASSES_NOTE))
        if isinstance(model.class_weight, dict):
            # A file names classes by text; the labels may be numbers.
            labels = dict(zip(outputs["names"], model.classes_.tolist(), strict=True))
            named = model.class_weight.items()
            model.class_weight = {labels.get(name, name): weight for name, weight in named}
    else:
        # A single output may still have been a column; the program knows no difference.
        one = len(outputs["names"]) == 1
        model._one_column = one and notes.get(_DIMENSIONS_NOTE, "1") == "1"
    weights = core.weights
    model.support_ = np.arange(len(weights))
    model._take_over(weights, core.bias)
    summary = told["summary"]
    model.n_iter_ = max(int(summary["iterations"]), 1)
    model.residual_ = summary["relative_residual"]
    model.history_ = _history([])
    return model


def _parameters(config: dict[str, Any], kind: type) -> dict[str, Any]:
    """Settings of the program as parameters of an estimator."""
    image = config.get("image-shape")
    if image is not None:
        image = (image["channels"], image["height"], image["width"])
    parameters = {
        "C": config["c"],
        "kernel": config["kernel"],
        "degree": config["degree"],
        "gamma": config["gamma"],
        "coef0": config["coef0"],
        "method": config["method"],
        "block_size": config["block-size"],
        "tol": config["tolerance"],
        "max_iter": config["iterations"],
        "preprocess": None if config["preprocess"] == "none" else config["preprocess"],
        "image_shape": image,
        "n_averages": config["averages"],
        "memory": config.get("memory"),
        "precision": config["precision"],
        "random_state": config["seed"],
    }
    if kind is LSSVMClassifier:
        parameters["class_weight"] = config.get("class-weight")
    return parameters


def _history(lines: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    def error(line: dict[str, Any]) -> float | None:
        percent = line.get("validation_error_percent")
        return line.get("validation_rmse") if percent is None else percent / 100

    def column(values: list[Any]) -> np.ndarray:
        return np.array([np.nan if value is None else value for value in values], dtype=float)

    return {
        "iteration": np.array([line["iteration"] for line in lines], dtype=int),
        "seconds": column([line["seconds"] for line in lines]),
        "residual": column([line["relative_residual"] for line in lines]),
        "error": column([error(line) for line in lines]),
    }


def _dense(X: Any) -> np.ndarray:
    """Sparse rows written out; the core works on dense ones."""
    return X.toarray() if hasattr(X, "toarray") else X


def _select(target: Any, rows: Any) -> Any:
    """Targets of these rows."""
    if isinstance(target, tuple):
        return target[0], np.ascontiguousarray(target[1][rows])
    return np.ascontiguousarray(target[rows])


def _plain(value: Any) -> Any:
    """A number or an array of NumPy as JSON has it."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"{value!r} cannot be written")


def _kind(classes: np.ndarray) -> str:
    """What the labels are, so that they can be had again from their text."""
    return {"b": "bool", "i": "int", "u": "int", "f": "float"}.get(classes.dtype.kind, "str")


def _image_shape(shape: Any) -> dict[str, int]:
    sizes = [int(size) for size in shape]
    if len(sizes) == 2:
        sizes = [1, *sizes]
    if len(sizes) != 3:
        raise ValueError(
            f"image_shape = {shape}: must be (height, width) or (channels, height, width)"
        )
    return dict(zip(("channels", "height", "width"), sizes, strict=True))


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} = {value!r}: must be a number") from None
