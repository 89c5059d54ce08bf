"""The classifier: what scikit-learn asks of one."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, column_or_1d, validate_data

from . import _lssvm
from ._base import _CLASSES_NOTE, _BaseLSSVM


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
    method : {"auto", "exact", "pcg", "gauss-seidel", "centers", "mp", "kaczmarz", "kaczmarz-mp", \
"nystrom"}, default="auto"
        How the system is solved; "auto" chooses by size and memory.
    block_size : int, default=None
        Rows of a block, for methods that work on blocks.
    n_centers : int, default=None
        Rows that the model of "centers" is made of; it is fitted on all. By default as many
        as memory and time allow.
    select : {"uniform", "pivoted"}, default=None
        How these rows are chosen: each equally likely, or by randomly pivoted Cholesky,
        which takes rows that others tell little of. By default "uniform".
    tol : float, default=1e-3
        Relative residual at which iterative methods stop.
    max_iter : int, default=-1
        Most iterations; -1 for the method's own number.
    time_limit : float, default=None
        Most seconds of a fit. An iterative method ends with what it has by then; "exact"
        has nothing before it is done, and pays no heed.
    preprocess : str, default=None
        Steps that are fitted, saved with the model and applied before the kernel:
        "standardize", "min-max", "center,unit-norm", "fourier", with commas between.
    image_shape : (height, width) or (channels, height, width), default=None
        The shape of the image that a row is, for ``augment`` and for steps that need it.
    augment : str, default=None
        Other ways in which each training image is seen too: "shift=1" moves it by up to a
        pixel in each direction (9 times the rows), "flip" mirrors it left to right,
        "rotate=10" turns it by ten degrees to either side; several multiply, with commas
        between. Needs ``image_shape``. Images that ``early_stopping`` keeps apart, and
        those to predict, are seen as they are.
    early_stopping : bool, default=False
        Keep rows apart, stop when their error no longer improves, and keep the best
        iteration.
    validation_fraction : float, default=0.1
        Share of the rows that ``early_stopping`` keeps apart.
    n_averages : int, default=1
        Runs of a block method with different seeds that are averaged.
    leave_one_out : bool, default=False
        Also compute what each training row would have been told by a model that never
        saw it, without training one: in closed form with ``method="exact"``, and as
        estimates whose error is stated with "pcg" (what "auto" takes for many rows), which
        take longer than the fit. It makes ``predict_proba`` calibrated, and
        ``predict_set`` possible.
    warm_start : bool, default=False
        Begin at the solution of the last ``fit``, or of the file that the model was loaded
        from, and keep its preprocessing and kernel (their parameters must be the same).
        Rows that the model has begin with their weights, others with zero. "exact" and
        "nystrom" have no use for a start and refuse it; "auto" takes a method that has.
    checkpoint : str or path-like, default=None
        A folder to keep the run in, so that it survives its process. If it holds a run that
        has not ended, ``fit`` goes on with that, to the same bits; one with other parameters
        or other data is refused. A fit that has ended removes its own; one that is
        interrupted leaves it.
    checkpoint_every : float, default=60.0
        Seconds from one checkpoint to the next.
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
        Which rows of ``X`` the model has; with ``augment`` one may be there in several ways.
    support_vectors_ : ndarray of shape (n_support, n_features_out)
        These rows, after preprocessing.
    loo_scores_ : ndarray of shape (n_learned, n_outputs)
        Scores of the training rows by models that never saw them, with
        ``leave_one_out``; one column a class. The rows are those of ``X``, in their
        order, without those of weight 0 and those that ``early_stopping`` kept apart.
    loo_error_ : float
        The leave-one-out error: share of wrong rows, with ``leave_one_out``.
    loo_standard_error_ : float
        Standard error of ``loo_error_`` as an estimate of the exact one; 0 if it is exact.
    n_iter_ : int
        Iterations that were made.
    residual_ : float
        Relative residual of the linear system; with "centers" that of its normal equations.
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

    More rows than a kernel matrix can have: a model of some rows, the centres, fitted on
    all, here on each image also moved by a pixel.

    >>> model = LSSVMClassifier(
    ...     C=100, method="centers", n_centers=300, image_shape=(8, 8), augment="shift=1",
    ...     random_state=0,
    ... ).fit(X[:1000], y[:1000])
    >>> model.support_vectors_.shape
    (300, 64)
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
            n_centers=n_centers,
            select=select,
            tol=tol,
            max_iter=max_iter,
            time_limit=time_limit,
            preprocess=preprocess,
            image_shape=image_shape,
            augment=augment,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            n_averages=n_averages,
            leave_one_out=leave_one_out,
            warm_start=warm_start,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
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
                f"there is only 1 class in the data, {self.classes_[0]}; classification needs "
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


def _kind(classes: np.ndarray) -> str:
    """What the labels are, so that they can be had again from their text."""
    return {"b": "bool", "i": "int", "u": "int", "f": "float"}.get(classes.dtype.kind, "str")
