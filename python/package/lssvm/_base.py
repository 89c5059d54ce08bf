"""What classifier and regressor share: fitting, scores and files, on the Rust core."""

from __future__ import annotations

import json
import os
import warnings
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.validation import (
    _check_sample_weight,
    check_array,
    check_is_fitted,
    validate_data,
)

from . import _lssvm
from ._dataset import precision_of
from ._onnx import write_onnx
from ._progress import Progress

_KERNELS = ("linear", "poly", "rbf", "laplacian", "sigmoid")

# Where a model keeps what Python wants to find again.
_PARAMETERS_NOTE = "python-parameters"
_CLASSES_NOTE = "python-classes"
_DIMENSIONS_NOTE = "python-target-dimensions"

# Methods that know how far they are from the solution, and aim at it.
_AIMING = ("pcg", "gauss-seidel", "centers")

# What means something only where the core has the rows, and what it is where it is off.
_OF_ROWS = {
    "early_stopping": False,
    "preprocess": None,
    "image_shape": None,
    "augment": None,
    "checkpoint": None,
    "warm_start": False,
}


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
        n_centers: int | None = None,
        select: str | None = None,
        tol: float = 1e-3,
        max_iter: int = -1,
        time_limit: float | None = None,
        preprocess: str | None = None,
        image_shape: Any = None,
        augment: str | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_averages: int = 1,
        leave_one_out: bool = False,
        warm_start: bool = False,
        checkpoint: Any = None,
        checkpoint_every: float = 60.0,
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
        self.n_centers = n_centers
        self.select = select
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.preprocess = preprocess
        self.image_shape = image_shape
        self.augment = augment
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_averages = n_averages
        self.leave_one_out = leave_one_out
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
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
        if self._given_kernel():
            self._expect_no_rows()
        config = self._config(X.dtype)
        keep, start = None, None
        if not self._given_kernel():
            keep, start = self._keep(config), self._start(config)
        progress = Progress() if self.verbose else None
        try:
            if self._given_kernel():
                self._fit_given(X, target, weights, all_rows, config, progress)
            else:
                self._fit_rows(
                    X, target, classes, weights, all_rows, config, keep, start, progress
                )
        finally:
            if progress:
                progress.close()
        told = json.loads(self._report.json())
        self.n_iter_ = max(int(told["iterations"]), 1)
        self.residual_ = told["relative_residual"]
        self.history_ = _history(told["history"])
        if self.leave_one_out:
            self._keep_left_out(told)
        self._warn(told)

    def _fit_rows(
        self,
        X: Any,
        target: Any,
        classes: int,
        weights: Any,
        rows: Any,
        config: dict[str, Any],
        keep: Any,
        start: Any,
        progress: Any,
    ) -> None:
        validation = None
        if self.early_stopping:
            within = np.arange(len(rows))
            within, apart = self._split(within, _select(target, rows), classes, config["seed"])
            validation = (rows[apart].astype(np.uint64), _select(target, rows[apart]))
            weights = None if weights is None else weights[within]
            rows = rows[within]
        everything = len(rows) == X.shape[0]
        names = getattr(self, "feature_names_in_", None)
        # The core takes its rows from the array, which may be larger than memory.
        self._model, self._report = _lssvm.fit(
            _rows(X),
            target if everything else _select(target, rows),
            json.dumps(config),
            rows=None if everything else rows.astype(np.uint64),
            weights=weights,
            feature_names=None if names is None else [str(name) for name in names],
            validation=validation,
            notes=self._notes(),
            keep=keep,
            start=start,
            progress=progress,
        )
        self.support_ = rows[np.asarray(self._report.support)]
        self._take_over(self._model.weights, self._model.bias)

    def _fit_given(
        self, X: Any, target: Any, weights: Any, rows: Any, config: dict[str, Any], progress: Any
    ) -> None:
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

    def _expect_no_rows(self) -> None:
        """Refuses what needs rows that the core has, where it is given a kernel."""
        for name, off in _OF_ROWS.items():
            if getattr(self, name) is not off and getattr(self, name) != off:
                raise ValueError(
                    f"{name}: needs a kernel that the core can compute; a precomputed one, or a "
                    f"function, knows nothing of it. Leave {name} at {off}"
                )
        if self.method == "centers":
            raise ValueError(
                "method = 'centers': computes kernel values of all rows with some of them when it "
                "needs them, and a precomputed kernel, or a function, cannot be asked for them; "
                "leave method at 'auto'"
            )

    def _keep(self, config: dict[str, Any]) -> tuple[str, float] | None:
        """Where the run is kept; `config` gets what is left open from a run that is there."""
        if self.checkpoint is None:
            return None
        folder = os.path.abspath(os.fspath(self.checkpoint))
        found = json.loads(_lssvm.checkpoint_settings(folder) or "{}")
        if not isinstance(self.random_state, Integral):
            config["seed"] = found.get("seed", config["seed"])
        if self.n_jobs is None:
            config["threads"] = found.get("threads", config["threads"])
        return folder, _number("checkpoint_every", self.checkpoint_every)

    def _start(self, config: dict[str, Any]) -> Any:
        """The model to begin at; `config` gets its precision, if that is left open."""
        start = getattr(self, "_model", None) if self.warm_start else None
        if start is not None and self.precision == "auto":
            config["precision"] = start.precision
        return start

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
        if self.augment is not None and self.leave_one_out:
            raise ValueError(
                "leave_one_out: an image that is seen in several ways is not left out by leaving "
                "one of them out; use early_stopping, whose images are kept apart in all ways"
            )
        config = {
            "task": self._task,
            "c": _finite("C", self.C),
            "degree": _whole("degree", self.degree),
            "gamma": self.gamma if isinstance(self.gamma, str) else _finite("gamma", self.gamma),
            "coef0": _finite("coef0", self.coef0),
            "method": self.method,
            "tolerance": _finite("tol", self.tol),
            "averages": _whole("n_averages", self.n_averages),
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
        if self.augment is not None:
            if self.image_shape is None:
                raise ValueError(
                    f"augment = {self.augment!r}: works on images; give image_shape=(height, width)"
                )
            config["augment"] = str(self.augment)
        if self.block_size is not None:
            config["block-size"] = _whole("block_size", self.block_size)
        if self.n_centers is not None:
            config["centers"] = _whole("n_centers", self.n_centers)
        if self.select is not None:
            config["select"] = str(self.select)
        if self.max_iter is not None and self.max_iter != -1:
            config["iterations"] = _whole("max_iter", self.max_iter)
        if self.time_limit is not None:
            config["time"] = _finite("time_limit", self.time_limit)
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

    def _keep_left_out(self, told: dict[str, Any]) -> None:
        """Leave-one-out scores and their error, or a warning that there are none."""
        for name in ("loo_scores_", "loo_error_", "loo_standard_error_"):
            # Those of an earlier fit would not belong to these weights.
            self.__dict__.pop(name, None)
        left_out = told.get("leave_one_out")
        if left_out is None:
            why = told.get("leave_one_out_missing")
            warnings.warn(
                f"leave_one_out: there are no scores: {why}", ConvergenceWarning, stacklevel=5
            )
            return
        self.loo_scores_ = self._report.leave_one_out
        percent = left_out.get("error_percent")
        estimate = left_out.get("estimate") or {"standard_error": 0.0}
        unit = 1 if percent is None else 100
        self.loo_error_ = left_out["rmse"] if percent is None else percent / unit
        self.loo_standard_error_ = estimate["standard_error"] / unit

    def _warn(self, told: dict[str, Any]) -> None:
        method = told["config"]["method"]
        if method in _AIMING and told["stopped"] in ("iterations", "time"):
            residual = told["relative_residual"]
            if residual is None or residual > self.tol:
                size = "that is unknown" if residual is None else f"of {residual:.1e}"
                in_time = told["stopped"] == "time"
                ended = "was out of time after" if in_time else "made all"
                warnings.warn(
                    f"{method} {ended} {told['iterations']} iterations and has a relative "
                    f"residual {size}, where tol = {self.tol:g} was wanted; raise "
                    f"{'time_limit' if in_time else 'max_iter'}, or tol, or lower C",
                    ConvergenceWarning,
                    stacklevel=4,
                )
        kept = told.get("checkpoints")
        if kept and kept["failed"]:
            warnings.warn(
                f"the run could not be kept in {kept['path']} {kept['failed']} times; it went on "
                f"without: {kept['problem'] or 'later it could'}",
                stacklevel=4,
            )

    # ----- predicting

    def _scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(
            self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False
        )
        if self._model is not None:
            return self._model.decision_function(_rows(X), self._threads())
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
        parameters = self.get_params(deep=False)
        # A place on this machine, and of a run that has ended.
        del parameters["checkpoint"]
        return parameters

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


# Rows stay sparse if at most one value of so many is kept, as in files.
_SPARSE = 16


def _rows(X: Any) -> Any:
    """Rows for the core: an array, or the parts of compressed sparse rows."""
    if not hasattr(X, "toarray"):
        return X
    X = X.tocsr()
    if X.nnz * _SPARSE > X.shape[0] * X.shape[1]:
        return X.toarray()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X.indptr.astype(np.uint64), X.indices.astype(np.uint32), X.data, X.shape[1]


def _dense(X: Any) -> np.ndarray:
    """Sparse rows written out, for what works on dense ones."""
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


def _finite(name: str, value: Any) -> float:
    number = _number(name, value)
    if not np.isfinite(number):
        raise ValueError(f"{name} = {value!r}: must be finite")
    return number


def _whole(name: str, value: Any) -> int:
    number = _number(name, value)
    if not number.is_integer():
        raise ValueError(f"{name} = {value!r}: must be a whole number")
    return int(value)
