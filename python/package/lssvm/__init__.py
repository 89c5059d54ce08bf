"""Kernel least-squares support vector machines for large data.

Estimators that behave like scikit-learn's, on a Rust core:

- :class:`LSSVMClassifier`, :class:`LSSVMRegressor`: train and predict.
- :class:`LSSVMSearchCV`: chooses kernel, parameters and C by leave-one-out errors.
- :func:`c_path`: leave-one-out errors for many values of C, from one factorisation.
- :func:`load`: a model that was saved here or by the program ``lssvm``.
- :class:`UnitNorm`, :class:`GaussianWindow`, :class:`FourierFeatures`: the
  transformations of the paper that the methods come from.
- :func:`load_dataset`: files of many formats as arrays.
- :func:`report`: a page about a model, to look at.
"""

from ._classifier import LSSVMClassifier
from ._dataset import load_dataset
from ._load import load
from ._lssvm import __version__
from ._path import c_path
from ._regressor import LSSVMRegressor
from ._report import report
from ._search import LSSVMSearchCV
from ._transformers import FourierFeatures, GaussianWindow, UnitNorm

__all__ = [
    "FourierFeatures",
    "GaussianWindow",
    "LSSVMClassifier",
    "LSSVMRegressor",
    "LSSVMSearchCV",
    "UnitNorm",
    "__version__",
    "c_path",
    "load",
    "load_dataset",
    "report",
]
