"""Settings that the theorems choose: from the number of rows and the exponents of a problem.

The problem is described by three exponents, which a user knows by construction or assumes:

- `source`: how smooth the target is, f = L^r g with the kernel's integral operator L and r from
  1/2 (any function of the kernel's space) to 1, beyond which the methods here gain nothing;
- `capacity`: how large the kernel's space is, N(lambda) = O(lambda^-gamma) with gamma in (0, 1];
  eigenvalues that fall as i^(-1 / gamma) have it, and 1 is always right;
- `compatibility`: alpha in (0, 1] of random features (thesis assumption 10); 1 is always right, and
  gamma is what features drawn by their leverage have.

A theorem gives orders of magnitude, and constants where it states them: those are far from what
validation finds, and the choices are where to start from, or how to scale a setting that was
validated on fewer rows. Penalties multiply n, as everywhere in this library, for kernels with
values up to kappa^2 = 1 unless another `kappa2` is given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from semiparam_dynamics.base.errors import ConfigurationError, positive, positive_count
from semiparam_dynamics.learning.centers import approximate_leverage_scores, uniform

POWER_ROUNDING = 1e-9  # that a power of a whole number may be above the next one

Dimension = Callable[[float], float]  # of the penalty


@dataclass(frozen=True)
class Choice:
    """Settings for n rows, named as the estimators' parameters; None: not what the theorem sets.

    Attributes
    ----------
    rate : the excess risk falls as n^-rate, but for logarithms; None where it has no exponent.
    penalty, n_centers, n_features, step, decay : as in the estimators, numbers rounded up.
    iterations : of gradient descent or conjugate gradient; of stochastic gradient its steps.
    """

    rate: float | None = None
    penalty: float | None = None
    n_centers: int | None = None
    n_features: int | None = None
    iterations: int | None = None
    step: float | None = None
    decay: float | None = None


@dataclass(frozen=True)
class Dimensions:
    """The effective dimension N(lambda) and its uniform bound, estimated from data.

    Attributes
    ----------
    effective : N(lambda) = tr K (K + lambda n I)^-1, the sum of the leverage scores.
    maximal : n times their maximum (thesis 4.16), an estimate of N_inf(lambda).
    """

    effective: float
    maximal: float


def effective_dimensions(
    X: Any,
    kernel: Any = None,
    penalty: float = 1e-3,
    n_centers: int = 1000,
    random_state: Any = None,
    memory_limit: int | None = None,
) -> Dimensions:
    """Estimates from inputs X (n, d), or Rows, by leverage scores on uniform centres.

    Exact where `n_centers` is n or more, too large by the part outside the centres' span
    elsewhere. Time O(n m^2). Raises ConfigurationError for a penalty that isn't positive.
    """
    positive(penalty, "penalty")
    sketch = uniform(X, n_centers, random_state).points
    scores = approximate_leverage_scores(X, sketch, kernel, penalty, memory_limit)
    return Dimensions(float(scores.sum()), float(len(scores) * scores.max()))


def nystrom(
    n: int,
    source: float = 0.5,
    capacity: float = 1.0,
    *,
    dimension: Dimension | None = None,
    leverage_scores: float | None = None,
    confidence: float = 0.05,
    kappa2: float = 1.0,
    norm: float = 1.0,
) -> Choice:
    """Penalty and number of centres of Nyström KRLS (thesis 4.2, theorem 1).

    lambda = |C| n^(-1 / (2 v + gamma + 1)) with v = min(s, 1/2), s = r - 1/2; for uniform centres
    m = max(67, 5 N_inf(lambda)) log(12 kappa^2 / (lambda delta)), and for those drawn by leverage
    scores that are right up to a factor T, `leverage_scores`,
    m = max(334, 78 T^2 N(lambda)) log(48 n / delta). At most n.

    `dimension` gives N_inf, or N, of a penalty (:func:`effective_dimensions` estimates both); None:
    what always holds, kappa^2 / lambda and kappa^2 lambda^-gamma. `confidence` is delta, `norm` the
    covariance operator's. Raises ConfigurationError for exponents or numbers out of range.
    """
    _check(n, source, capacity, {"confidence": confidence}, kappa2=kappa2, norm=norm)
    v = min(source - 0.5, 0.5)
    exponent = 1.0 / (2.0 * v + capacity + 1.0)
    penalty = norm * n**-exponent
    if leverage_scores is None:
        size = dimension(penalty) if dimension else kappa2 / penalty
        m = max(67.0, 5.0 * size) * math.log(12.0 * kappa2 / (penalty * confidence))
    else:
        size = dimension(penalty) if dimension else kappa2 * penalty**-capacity
        factor = 78.0 * positive(leverage_scores, "leverage_scores") ** 2
        m = max(334.0, factor * size) * math.log(48.0 * n / confidence)
    return Choice((2.0 * v + 1.0) * exponent, penalty, _whole(m, n))


def computational_regularisation(n: int, source: float = 0.5, capacity: float = 1.0) -> Choice:
    """The number of centres as the one regulariser (thesis 4.2.3, after theorem 1).

    m = 3 n^(1 / (2 v + gamma + 1)) log n, at most n, and lambda = log(m) / m.
    """
    _check(n, source, capacity)
    v = min(source - 0.5, 0.5)
    exponent = 1.0 / (2.0 * v + capacity + 1.0)
    m = _whole(3.0 * n**exponent * math.log(n), n)
    return Choice((2.0 * v + 1.0) * exponent, math.log(m) / m if m > 1 else 1.0, m)


def centers_for_penalty(
    n: int, penalty: float, dimension: float, *, norm: float | None = None, factor: float = 1.0
) -> int:
    """m with which Nyström KRLS keeps the risk of KRLS but for 1 + 4 delta (thesis theorem 5).

    m = (32 d / delta + 2) log(|K| n / (delta lambda)), at most n (Bach 2013), with d = `dimension`,
    n times the largest leverage score, delta = `factor` and |K| = `norm`, the largest eigenvalue
    of the kernel matrix; None: n.
    """
    largest = float(n) if norm is None else positive(norm, "norm")
    delta = positive(factor, "factor")
    size = 32.0 * positive(dimension, "dimension") / delta + 2.0
    return _whole(size * math.log(largest * n / (delta * positive(penalty, "penalty"))), n)


def nytro(
    n: int,
    signal_to_noise: float,
    *,
    step: float = 1.0,
    dimension: Dimension | None = None,
    norm: float | None = None,
    factor: float = 1.0,
) -> Choice:
    """Iterations and centres of NYTRO (thesis 4.3, theorem 4 and corollary 1).

    t = SNR / gamma for the step gamma and SNR = |f|^2 / sigma^2, which is the penalty 1 / SNR, and
    m = (32 d(1 / SNR) / delta + 2) log(n |K| gamma t / delta); see :func:`centers_for_penalty`.
    `dimension` is d of a penalty; None: the bound 1 / penalty. The risk is that of KRLS with this
    penalty, up to a constant.
    """
    penalty = 1.0 / positive(signal_to_noise, "signal_to_noise")
    t = max(_whole(signal_to_noise / positive(step, "step")), 2)
    size = 1.0 / penalty if dimension is None else dimension(penalty)
    m = centers_for_penalty(n, penalty, size, norm=norm, factor=factor)
    return Choice(n_centers=m, iterations=t, step=step)


def random_features(
    n: int, source: float = 0.5, capacity: float = 1.0, compatibility: float = 1.0
) -> Choice:
    """Penalty and number of random features (thesis theorems 9 to 11).

    lambda = n^(-1 / (2 v + gamma)) with v = min(r, 1) and m = lambda^-c with
    c = alpha + (1 + gamma - alpha) (2 v - 1). With alpha = 1 that is theorem 10, with r = 1/2 and
    gamma = 1 too theorem 9: n^(-1/2) and sqrt(n).
    """
    rate, exponent = feature_exponents(source, capacity, compatibility)
    penalty = positive_count(n, "n") ** (-1.0 / (2.0 * min(source, 1.0) + capacity))
    return Choice(rate, penalty, n_features=_whole(n**exponent))


def feature_exponents(source: float, capacity: float, compatibility: float) -> tuple[float, float]:
    """(rate, exponent of m): the excess risk falls as n^-rate with m = n^exponent features."""
    _check(1, source, capacity, {"compatibility": compatibility})
    v = min(source, 1.0)
    c = compatibility + (1.0 + capacity - compatibility) * (2.0 * v - 1.0)
    return 2.0 * v / (2.0 * v + capacity), c / (2.0 * v + capacity)


def center_exponents(source: float, capacity: float, compatibility: float) -> tuple[float, float]:
    """(rate, exponent of m) of Nyström centres (Rudi, Camoriano, Rosasco 2015).

    m = N_inf(lambda) of them.

    With N_inf(lambda) = lambda^-alpha, alpha = 1 for uniform centres whatever the data, gamma for
    centres drawn by leverage scores.
    """
    _check(1, source, capacity, {"compatibility": compatibility})
    v = min(source, 1.0)
    return 2.0 * v / (2.0 * v + capacity), compatibility / (2.0 * v + capacity)


def sgm(
    n: int,
    approximation: float = 1.0,
    *,
    tuned: str = "passes",
    decaying: bool = False,
    smooth: bool = True,
    first_step: float = 1.0,
) -> Choice:
    """Step sizes and number of steps of stochastic gradient (thesis corollaries 2 to 9).

    `approximation` is beta in (0, 1], the exponent of the approximation error; 1 where the best
    function lies in the kernel's space. `tuned` says what regularises:

    - "passes": the step is fixed, first_step / sqrt(n), or with `decaying` first_step / sqrt(k) at
      step k, and the number of steps depends on beta (SIGM; corollaries 2, 3, 6 and 7);
    - "step": n steps, one pass, of first_step n^-theta or with `decaying` first_step k^-theta,
      where theta depends on beta (SGM; corollaries 4, 5, 8 and 9).

    `smooth`: of the loss; square and logistic are, the hinge is not. Raises ConfigurationError for
    another `tuned` and for numbers out of range.
    """
    _check(n, 0.5, 1.0, {"approximation": approximation})
    eta, beta = positive(first_step, "first_step"), approximation
    rate = beta / (beta + 1.0) if smooth else beta / (2.0 * beta + 1.0)
    if tuned == "step":
        theta = beta / (beta + 1.0) if smooth else 2.0 * beta / (2.0 * beta + 1.0)
        if decaying:
            return Choice(rate, iterations=n, step=eta, decay=theta)
        return Choice(rate, iterations=n, step=eta * n**-theta, decay=0.0)
    if tuned != "passes":
        raise ConfigurationError(f'tuned must be "passes" or "step", not {tuned!r}.')
    if decaying:
        exponent = 2.0 / (beta + 1.0) if smooth else 2.0 / (2.0 * beta + 1.0)
        return Choice(rate, iterations=_whole(n**exponent), step=eta, decay=0.5)
    if smooth:
        exponent = (beta + 3.0) / (2.0 * (beta + 1.0))
    else:
        exponent = (2.0 * beta + 3.0) / (4.0 * beta + 2.0)
    return Choice(rate, iterations=_whole(n**exponent), step=eta / math.sqrt(n), decay=0.0)


def falkon(
    n: int,
    source: float | None = None,
    capacity: float = 1.0,
    *,
    dimension: Dimension | None = None,
    leverage_scores: float | None = None,
    output_range: float = 1.0,
    confidence: float = 0.05,
    kappa2: float = 1.0,
) -> Choice:
    """Penalty, centres and iterations of FALKON (Rudi, Carratino, Rosasco 2017).

    Without a `source`, theorem 3: lambda = n^(-1/2), M = 75 sqrt(n) log(48 kappa^2 n / delta) and
    t = log(n) / 2 + 5 + 2 log(a + 3 kappa), for outputs within an interval of length a,
    `output_range`. With one, theorem 5: lambda = n^(-1 / (2 r + gamma)),
    t = log(n) + 5 + 2 log(a + 3 kappa^2), and with l = log(8 kappa^2 / (lambda delta)) uniform
    centres M = 70 (1 + N_inf(lambda)) l or, drawn by leverage scores that are right up to a factor
    q, `leverage_scores`, M = 220 (2 + q^2 N(lambda)) l. At most n centres. Of another penalty:
    :func:`falkon_centers`.

    `dimension`, `confidence` and `kappa2` as in :func:`nystrom`.
    """
    r = 0.5 if source is None else source
    _check(n, r, capacity, {"confidence": confidence}, kappa2=kappa2, output_range=output_range)
    kappa = math.sqrt(kappa2)
    if source is None:
        m = 75.0 * math.sqrt(n) * math.log(48.0 * kappa2 * n / confidence)
        t = 0.5 * math.log(n) + 5.0 + 2.0 * math.log(output_range + 3.0 * kappa)
        return Choice(0.5, n**-0.5, _whole(m, n), iterations=_whole(t))
    r = min(r, 1.0)
    penalty = n ** (-1.0 / (2.0 * r + capacity))
    constant, size = 70.0, dimension(penalty) if dimension else kappa2 / penalty
    if leverage_scores is not None:
        constant, size = 220.0, dimension(penalty) if dimension else kappa2 * penalty**-capacity
    m = _falkon_centers(constant, penalty, size, leverage_scores, confidence, kappa2)
    t = math.log(n) + 5.0 + 2.0 * math.log(output_range + 3.0 * kappa2)
    rate = 2.0 * r / (2.0 * r + capacity)
    return Choice(rate, penalty, _whole(m, n), iterations=_whole(t))


def falkon_centers(
    n: int,
    penalty: float,
    dimension: float,
    *,
    leverage_scores: float | None = None,
    confidence: float = 0.05,
    kappa2: float = 1.0,
) -> int:
    """M with which FALKON's error falls as exp(-t / 2) in t iterations, whatever the penalty.

    With l = log(8 kappa^2 / (lambda delta)) uniform centres M = 70 (1 + N_inf(lambda)) l, or, drawn
    by leverage scores that are right up to a factor q, `leverage_scores`,
    M = 215 (2 + q^2 N(lambda)) l; `dimension` is N_inf or N, `confidence` delta. At most n (Rudi,
    Carratino, Rosasco 2017, theorem 4). Raises ConfigurationError for numbers out of range.
    """
    _check(n, 0.5, 1.0, {"confidence": confidence}, kappa2=kappa2, dimension=dimension)
    constant = 70.0 if leverage_scores is None else 215.0
    positive(penalty, "penalty")
    m = _falkon_centers(constant, penalty, dimension, leverage_scores, confidence, kappa2)
    return _whole(m, n)


def _falkon_centers(
    constant: float,
    penalty: float,
    size: float,
    leverage_scores: float | None,
    confidence: float,
    kappa2: float,
) -> float:
    """The M of FALKON's theorems 4 and 5, which differ in a constant."""
    logarithm = math.log(8.0 * kappa2 / (penalty * confidence))
    if leverage_scores is None:
        return constant * (1.0 + size) * logarithm
    return constant * (2.0 + positive(leverage_scores, "leverage_scores") ** 2 * size) * logarithm


def _whole(value: float, most: int | None = None) -> int:
    """Rounded up, from 1 on, and to `most` at most."""
    number = max(math.ceil(value * (1.0 - POWER_ROUNDING)), 1)
    return number if most is None else min(number, most)


def _check(
    n: int,
    source: float,
    capacity: float,
    shares: Mapping[str, float] | None = None,
    **positives: float,
) -> None:
    positive_count(n, "n")
    if not (math.isfinite(source) and source >= 0.5):
        raise ConfigurationError(f"source must be 1/2 or more, not {source}.")
    for name, value in {"capacity": capacity, **(shares or {})}.items():
        if not 0.0 < value <= 1.0:
            raise ConfigurationError(f"{name} must lie in (0, 1], not {value}.")
    for name, value in positives.items():
        positive(value, name)
