"""The transformations of Andrecut (2016) as scikit-learn transformers.

Each treats every row alone and learns nothing from the data but their shape.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from . import _lssvm
from ._dataset import precision_of


class _RowTransformer(TransformerMixin, BaseEstimator):
    """Steps of the core, given as text by ``_steps``."""

    def _steps(self) -> str:
        raise NotImplementedError

    def _image(self) -> list[int] | None:
        shape = getattr(self, "image_shape", None)
        if shape is None:
            return None
        sizes = [int(size) for size in shape]
        if len(sizes) == 2:
            sizes = [1, *sizes]
        if len(sizes) != 3:
            raise ValueError(
                f"image_shape = {shape}: must be (height, width) or (channels, height, width)"
            )
        return sizes

    def fit(self, X: Any, y: Any = None) -> Any:
        """Learn the number of features; check the parameters.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        y : None
            Ignored.

        Returns
        -------
        self : object
            Fitted transformer.
        """
        X = self._validated(X, reset=True)
        self._pipeline = _lssvm.Pipeline.fit(self._steps(), X[:1], self._image())
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Transform rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        X_new : ndarray of shape (n_samples, n_features_out)
            The rows, transformed, in the number type of ``X``.
        """
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        return self._pipeline.transform(X, precision_of(X.dtype))

    def _validated(self, X: Any, reset: bool) -> Any:
        return validate_data(self, X, dtype=[np.float64, np.float32], reset=reset)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class UnitNorm(OneToOneFeatureMixin, _RowTransformer):
    """Rows of zero mean and unit length (eqs. 61 and 62).

    A row without length stays zero.

    Parameters
    ----------
    center : bool, default=True
        Subtract from each row its mean first.

    Examples
    --------
    >>> import lssvm
    >>> lssvm.UnitNorm().fit_transform([[1.0, 3.0], [5.0, 5.0]])
    array([[-0.70710678,  0.70710678],
           [ 0.        ,  0.        ]])
    """

    def __init__(self, *, center: bool = True) -> None:
        self.center = center

    def _steps(self) -> str:
        return "center,unit-norm" if self.center else "unit-norm"


class GaussianWindow(OneToOneFeatureMixin, _RowTransformer):
    """Images with a weakened rim (eq. 76).

    Parameters
    ----------
    c : float, default=None
        How fast the weight falls with the squared distance from the middle, in pixels;
        4 / (height * width) by default.
    first : {1, 0}, default=1
        What the pixels of a row and a column are counted from: 1 as in the paper, so that
        the middle is half a pixel up and left of the true one, or 0.
    image_shape : (height, width) or (channels, height, width), default=None
        The shape of the image that a row is; a square with one channel by default.

    Examples
    --------
    >>> import numpy as np, lssvm
    >>> window = lssvm.GaussianWindow(image_shape=(3, 3))
    >>> window.fit_transform(np.ones((1, 9))).round(2).reshape(3, 3)
    array([[0.8 , 0.8 , 0.33],
           [0.8 , 0.8 , 0.33],
           [0.33, 0.33, 0.14]])
    """

    def __init__(self, *, c: float | None = None, first: int = 1, image_shape: Any = None) -> None:
        self.c = c
        self.first = first
        self.image_shape = image_shape

    def _steps(self) -> str:
        c = "" if self.c is None else f":c={float(self.c)!r}"
        return f"window{c}:first={self.first}"

    def _image(self) -> list[int] | None:
        shape = super()._image()
        if shape is not None:
            return shape
        side = round(self.n_features_in_**0.5)
        if side * side == self.n_features_in_:
            return [1, side, side]
        # Not a square: one row of pixels.
        return [1, 1, self.n_features_in_]


class FourierFeatures(_RowTransformer):
    """Rows and the size of their Fourier transform, side by side (eqs. 69 to 75).

    Rows grow by half: the transform of real numbers is symmetric, and its first half
    says all.

    Parameters
    ----------
    exponent : float, default=0.5
        The power to which the size of the transform is raised.
    kind : {"1d", "1d-channel", "2d"}, default="1d"
        Of the whole row as one signal, channels one after the other; of the pixels of each
        channel as one signal; or of each channel as an image.
    order : {"columns", "rows"}, default="columns"
        In which order the pixels of an image are made a vector.
    image_shape : (height, width) or (channels, height, width), default=None
        The shape of the image that a row is; without it a row is taken as it is.

    Examples
    --------
    >>> import numpy as np, lssvm
    >>> lssvm.FourierFeatures(exponent=1).fit_transform(np.eye(4)).shape
    (4, 6)
    """

    def __init__(
        self,
        *,
        exponent: float = 0.5,
        kind: str = "1d",
        order: str = "columns",
        image_shape: Any = None,
    ) -> None:
        self.exponent = exponent
        self.kind = kind
        self.order = order
        self.image_shape = image_shape

    def _steps(self) -> str:
        exponent = float(self.exponent)
        return f"fourier:exponent={exponent!r}:transform={self.kind}:order={self.order}"

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the features: pixel0, pixel1, ..., frequency0, ...

        Parameters
        ----------
        input_features : ignored
            Not used.

        Returns
        -------
        feature_names_out : ndarray of str
            The names.
        """
        check_is_fitted(self)
        n = self.n_features_in_
        more = self._pipeline.n_features_out - n
        names = [f"pixel{i}" for i in range(n)] + [f"frequency{i}" for i in range(more)]
        return np.array(names, dtype=object)
