"""The regressor: what scikit-learn asks of one."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import validate_data

from ._base import _DIMENSIONS_NOTE, _BaseLSSVM


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
        Steps that are fitted, saved with the model and applied before the kernel.
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
        take longer than the fit. It makes ``predict_interval``
        possible.
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
        Which rows of ``X`` the model has; with ``augment`` one may be there in several ways.
    support_vectors_ : ndarray of shape (n_support, n_features_out)
        These rows, after preprocessing.
    loo_scores_ : ndarray of shape (n_learned, n_outputs)
        Scores of the training rows by models that never saw them, with
        ``leave_one_out``; one column an output. The rows are those of ``X``, in their
        order, without those of weight 0 and those that ``early_stopping`` kept apart.
    loo_error_ : float
        The leave-one-out error: RMSE, with ``leave_one_out``.
    loo_standard_error_ : float
        Standard error of ``loo_error_`` as an estimate of the exact one; 0 if it is exact.
    n_iter_ : int
        Iterations that were made.
    residual_ : float
        Relative residual of the linear system; with "centers" that of its normal equations.
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

    Go on from the last solution with another C; "pcg" sees how much is missing.

    >>> model.set_params(C=1010, warm_start=True, method="pcg").fit(X, np.sin(X[:, 0])).n_iter_ < 5
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
