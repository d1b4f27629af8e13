"""The recursion: one row at a time and in blocks, growing, with every way to forget."""

from __future__ import annotations

from typing import Any

import numpy as np

from .table import Arrays, case, state_arrays

D, T = 37, 3  # neither fills whole vector registers


def rows(n: int, d: int = D, outputs: int = T) -> tuple[np.ndarray, np.ndarray]:
    """Feature rows and targets, with noise."""
    rng = np.random.default_rng(7)
    Z = rng.standard_normal((n, d)) * np.linspace(0.1, 3.0, d)
    Y = Z @ rng.standard_normal((d, outputs)) + 0.3 * rng.standard_normal((n, outputs))
    return Z, Y


def known(core: Any, Z: np.ndarray) -> Arrays:
    """Weights, variances, leverages and state of a recursion."""
    found = {"weights": core.weights(), "variances": core.covariance_diagonal()}
    return found | {"leverages": core.leverages(Z)} | state_arrays(core.state())


def in_turn(core: Any, Z: np.ndarray, Y: np.ndarray, **learn: Any) -> Arrays:
    """The prediction of each row before it is learned, and its leverage."""
    said, leverages = [], []
    for z, y in zip(Z, Y, strict=True):
        outputs, leverage = core.predict(z)
        said.append(outputs)
        leverages.append(leverage)
        core.update(z, y)
    return {"said": np.array(said), "leverage": np.array(leverages)}


@case("recursion/in_turn")
@case("recursion/one_output", outputs=1)
@case("recursion/forgetting", forgetting=0.99)
def recursion(outputs: int = T, **values: Any) -> Arrays:
    """Rows are asked and learned in turn, with another ridge from the middle on."""
    from semiparam_dynamics.learning.recursion.rls import RecursiveLeastSquares

    Z, Y = rows(300, outputs=outputs)
    core = RecursiveLeastSquares(D, outputs, 0.5, **values)
    first = in_turn(core, Z[:150], Y[:150])
    core.set_penalty(4.0)
    raised = core.weights().copy()
    second = in_turn(core, Z[150:200], Y[150:200])
    core.set_penalty(1.0)
    third = in_turn(core, Z[200:], Y[200:])
    said = {key: np.concatenate((first[key], second[key], third[key])) for key in first}
    return said | {"raised": raised} | known(core, Z[:20])


@case("recursion/growing")
def growing() -> Arrays:
    """A feature is added every third row; then another recursion resumes from the state."""
    from semiparam_dynamics.learning.recursion.rls import RecursiveLeastSquares

    Z, Y = rows(200)
    core = RecursiveLeastSquares(0, T, 2.0, capacity=D)
    said = []
    for k, (z, y) in enumerate(zip(Z, Y, strict=True)):
        if k % 3 == 0 and core.n_features < D:
            core.add_feature()
        said.append(core.predict(z[: core.n_features])[0])
        core.update(z[: core.n_features], y)
    other = RecursiveLeastSquares(0, T, 2.0, capacity=D)
    other.restore(core.state())
    after = in_turn(other, Z[:50], Y[:50])
    return {"said": np.array(said), "restored": after["said"]} | known(core, Z[:20])


@case("recursion/replacing")
def replacing() -> Arrays:
    """Rows that take the place of what is known where they are."""
    from semiparam_dynamics.learning.recursion.rls import RecursiveLeastSquares

    Z, Y = rows(300)
    core = RecursiveLeastSquares(D, T, 0.5)
    said = []
    for z, y in zip(Z, Y, strict=True):
        said.append(core.predict(z)[0])
        core.update_replacing(z, y, 0.05)
    return {"said": np.array(said)} | known(core, Z[:20])


@case("recursion/fading")
def fading() -> Arrays:
    """Everything fades, at one rate, between the rows."""
    from semiparam_dynamics.learning.recursion.rls import RecursiveLeastSquares

    Z, Y = rows(200)
    core = RecursiveLeastSquares(D, T, 0.5)
    said = []
    for k, (z, y) in enumerate(zip(Z, Y, strict=True)):
        said.append(core.predict(z)[0])
        core.update(z, y)
        if k % 5 == 0:
            core.forget(0.97)
    return {"said": np.array(said)} | known(core, Z[:20])


@case("recursion/rows")
def several() -> Arrays:
    """Rows learned several at a time, and in groups that are asked before they are learned."""
    from semiparam_dynamics.learning.recursion.rls import RecursiveLeastSquares

    Z, Y = rows(240)
    core = RecursiveLeastSquares(D, T, 0.5)
    left = []
    for k in range(0, 120, 8):
        errors, leverages = core.update_rows(Z[k : k + 8], Y[k : k + 8])
        left.append(errors / np.sqrt(1.0 + leverages)[:, None])
    errors, leverages = core.update_rows(Z[120:], Y[120:])
    found = {"left": np.concatenate(left), "errors": errors, "leverages": leverages}
    one = RecursiveLeastSquares(D, 1, 0.5)
    of_one = one.update_rows(Z[:120], Y[:120, :1])
    found |= {"one/errors": of_one[0], "one/leverages": of_one[1]}
    return found | known(core, Z[:20])
