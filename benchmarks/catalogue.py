"""What is compared on what: the data sets with their settings, and the methods.

Standard library only: compare.py reads this before anything is installed.
"""
from collections.abc import Callable
from dataclasses import dataclass

CLASSIFICATION, REGRESSION = "classification", "regression"


@dataclass(frozen=True)
class DataSet:
    """Training and test rows, and the settings that every method gets.

    c, C and epsilon were chosen on a validation split of the training rows by
    `compare.py --tune --small DIR`, which prints all errors; the test rows decided nothing.
    """

    source: str
    task: str
    preprocess: str
    kernel: str
    c: float
    """Weight of the squared errors, λ = 1/c, for all least-squares machines."""
    svm_c: float
    """C of SVC and SVR."""
    svm_epsilon: float | None = None
    """Half width of SVR's tube."""
    rows: int | None = None
    """So many of the first training rows; all without it."""

    @property
    def from_repository(self) -> bool:
        return self.source == "mnist"


# (x·y)⁴ on centred rows of unit norm, and c = 1e4: the paper's setting, which is lssvm's default for
# images. gamma = 1 is what `scale` gives for such rows. C from 3 to 300 all give 3.64 % on the validation
# rows: the classes are separable.
MNIST = dict(source="mnist", task=CLASSIFICATION, preprocess="unit-norm", kernel="poly", c=1e4, svm_c=3)

SETS = {
    "mnist-10000": DataSet(**MNIST, rows=10_000),
    "mnist-60000": DataSet(**MNIST),
    "a9a": DataSet("a9a", CLASSIFICATION, "standardize", "rbf", c=0.3, svm_c=1),
    "bike": DataSet("bike", REGRESSION, "standardize", "rbf", c=100, svm_c=100, svm_epsilon=0.01),
}

# The degree of every poly here; a power of two, so that squaring in place computes it.
DEGREE = 4


@dataclass(frozen=True)
class Method:
    """A way to fit, and what is known of it beforehand."""

    label: str
    """{svm} stands for SVC or SVR."""
    problem: str
    package: str | None = None
    """The requirement without which it cannot run; None for lssvm."""
    module: str = ""
    """What it imports."""
    needs: Callable[[int, int], tuple[int, str]] | None = None
    """From rows and features to the bytes it cannot do without, and what they are."""
    arguments: tuple[str, ...] = ()
    """To `lssvm train`."""

    def name(self, task: str) -> str:
        return self.label.format(svm="SVC" if task == CLASSIFICATION else "SVR")


def kernel_ridge_needs(rows: int, _features: int) -> tuple[int, str]:
    # Measured: 3.1 matrices more for more rows, with scipy.linalg.solve of scipy 1.17.
    return 3 * 8 * rows**2, "the f64 kernel matrix and two copies that its solver makes, 3·8·N² bytes"


def cholesky_needs(rows: int, features: int) -> tuple[int, str]:
    return 4 * rows * (rows + 2 * features), "the f32 kernel matrix and the rows twice, 4·N·(N+2M) bytes"


def nystroem_needs(columns: int) -> Callable[[int, int], tuple[int, str]]:
    def needs(rows: int, features: int) -> tuple[int, str]:
        # The columns of the kernel matrix, the features made of them, their centred copy.
        return 8 * rows * (3 * columns + features), "three f64 matrices of N rows and m columns"

    return needs


LEAST_SQUARES = "least squares"
HINGE = "SVM"

SKLEARN = dict(package="scikit-learn", module="sklearn.svm")

METHODS = {
    "lssvm": Method("lssvm", LEAST_SQUARES),
    "lssvm-exact": Method("lssvm --method exact", LEAST_SQUARES, arguments=("--method", "exact")),
    "lssvm-pcg": Method("lssvm --method pcg", LEAST_SQUARES, arguments=("--method", "pcg")),
    "lssvm-one-pass": Method(
        "lssvm --method gauss-seidel --iterations 1", "least squares, one pass",
        arguments=("--method", "gauss-seidel", "--iterations", "1"),
    ),
    "numpy-cholesky": Method(
        "numpy + scipy Cholesky, f32", LEAST_SQUARES, "scipy", "scipy.linalg", cholesky_needs
    ),
    "sklearn-kernel-ridge": Method(
        "scikit-learn KernelRidge", LEAST_SQUARES, needs=kernel_ridge_needs, **SKLEARN
    ),
    "sklearn-nystroem-2000": Method(
        "scikit-learn Nystroem 2,000 + Ridge", "least squares, 2,000 columns",
        needs=nystroem_needs(2000), **SKLEARN
    ),
    "sklearn-nystroem-5000": Method(
        "scikit-learn Nystroem 5,000 + Ridge", "least squares, 5,000 columns",
        needs=nystroem_needs(5000), **SKLEARN
    ),
    "sklearn-svm": Method("scikit-learn {svm}", HINGE, **SKLEARN),
    "sklearnex-svm": Method(
        "scikit-learn-intelex {svm}", HINGE, "scikit-learn-intelex", "sklearnex.svm"
    ),
    "libsvm": Method("LIBSVM {svm}", HINGE, "libsvm-official", "libsvm.svmutil"),
    "thundersvm": Method("ThunderSVM {svm}", HINGE, "thundersvm-cpu", "thundersvm"),
}

# lssvm's own limit for `exact` by default.
LARGEST_EXACT = 15_000


def reference(rows: int) -> str:
    """The method whose training time is 1 in the ratios: lssvm on the whole system.

    Fixed by the rows, not by what turns out fastest.
    """
    return "lssvm-exact" if rows <= LARGEST_EXACT else "lssvm-pcg"
