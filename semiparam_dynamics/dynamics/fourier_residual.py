"""The thesis' residual: random Fourier features of [q, dq, ddq, y^] (thesis 8.3, figure 8.2)."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.arrays import Array, Indices
from semiparam_dynamics.dynamics.forgetting import ForgettingClock
from semiparam_dynamics.dynamics.input_groups import width_parameter
from semiparam_dynamics.dynamics.local_model import part
from semiparam_dynamics.dynamics.residual_data import BatchErrors, Fit, ResidualData
from semiparam_dynamics.dynamics.sample import Guess, GuessBlock
from semiparam_dynamics.dynamics.standardizer import Standardizer
from semiparam_dynamics.learning.fourier import draw_frequencies, fourier_features
from semiparam_dynamics.learning.prompt_weights import PromptWeights
from semiparam_dynamics.learning.recursive import RecursiveLeastSquares
from semiparam_dynamics.learning.row_blocks import ask_block, learn_block
from semiparam_dynamics.parameters import parameter


@dataclass(frozen=True)
class RandomFourierConfig:
    """The residual `random_fourier`: the thesis', good where it was trained, unsafe elsewhere."""

    n_features: int = parameter(
        500, "random features (half of them cosines, half sines)", low=2, high=20000
    )
    length_scale: float = parameter(
        1.0,
        "width of the Gaussian kernel on standardised inputs, in units of sqrt(inputs / 2)",
        low=1e-3,
        high=1e3,
    )
    position_width: float = width_parameter("positions")
    velocity_width: float = width_parameter("velocities")
    acceleration_width: float = width_parameter("accelerations")
    rigid_body_width: float = width_parameter("the rigid body's predictions")
    penalty: float = parameter(1.0, "ridge on the weights", low=1e-9, high=1e9, live=True)
    window: float = parameter(
        10.0,
        "the inputs are standardised by what the first seconds of motion showed",
        unit="s",
        low=0.0,
        high=3600.0,
    )
    memory: float = parameter(
        0.0,
        "for about how long what was learned counts; what was learned before fades everywhere, "
        "down to the ridge; 0: for ever",
        unit="s",
        low=0.0,
        high=1e7,
        live=True,
    )


class FourierResidual:
    """Ridge regression of the residual y - y^ on random Fourier features of a Gaussian kernel.

    The target is the residual at the time of the sample, as in the thesis. With a memory it counts
    exp(-age / memory), everywhere: these features are nowhere small, so that no place has its own.
    `widths` (d,) are the inputs' relative kernel widths.
    """

    STEP = 0.001  # of the memory, in which it passes

    def __init__(self, widths: Array, n_axes: int, config: RandomFourierConfig, seed: int) -> None:
        n_inputs = len(widths)
        width = config.length_scale * math.sqrt(n_inputs / 2)
        half = max(config.n_features // 2, 1)
        self.length_scale, self.seed = width, seed
        self._frequencies = draw_frequencies(half, n_inputs, width, seed)
        self.standardizer = Standardizer(widths, config.window)
        self._clock = ForgettingClock(config.memory, self.STEP)
        self.core = RecursiveLeastSquares(2 * half, n_axes, config.penalty)
        self._prompt: PromptWeights | None = None

    @property
    def n_features(self) -> int:
        """Features in use."""
        return self.core.n_features

    def penalties(self, config: RandomFourierConfig) -> list[tuple[RecursiveLeastSquares, float]]:
        """The recursions of this model, with the ridge that `config` wants for each."""
        return [(self.core, config.penalty)]

    def remember(self, config: RandomFourierConfig) -> None:
        """Take the memory from `config`; what was learned stays as it is."""
        self._clock.memory = config.memory
        self._prompt = None

    def predict(self, x: Array, parameters: Array) -> Guess:
        """The residual at x; `parameters` are not needed, the targets were stored as they were."""
        if not self.standardizer.ready:
            return Guess(np.zeros(self.core.n_outputs), 0.0)
        scaled = self.standardizer.transform(x)
        phi = self.features(scaled)
        value = self.core.predict(phi)
        return Guess(value, self._last_confidence(), scaled, (phi,))

    def keep_ready(self, wanted: bool = True) -> bool:
        """Whether learning keeps the weights up to date from now on, for :meth:`predict_promptly`.

        It doesn't with a memory, which moves all weights. What replaces what was learned ends it.
        """
        possible = wanted and self._clock.memory == 0.0
        self._prompt = PromptWeights(self.core) if possible else None
        return possible

    def predict_promptly(self, x: Array) -> Guess:
        """:meth:`predict` without its confidence (NaN), in O(D T); :meth:`assess` completes it.

        The values are the same to rounding. After :meth:`keep_ready` it may be asked while another
        thread learns.
        """
        prompt = self._prompt
        if not self.standardizer.ready or prompt is None:
            return self.predict(x, np.zeros(0))
        scaled = self.standardizer.transform(x)
        phi = self.features(scaled)
        return Guess(prompt.predict(phi), math.nan, scaled, (phi,))

    def assess(self, guess: Guess) -> Guess:
        """The same guess with the confidence that :meth:`predict_promptly` left out."""
        if not math.isnan(guess.confidence):
            return guess
        self.core.predict(guess.features[0])
        return dataclasses.replace(guess, confidence=self._last_confidence())

    def features(self, X: Array) -> Array:
        """Features (D,) or (k, D) of standardised inputs (d,) or (k, d)."""
        return fourier_features(X, self._frequencies)

    def update(
        self, stamp: int, x: Array, guess: Guess, y: Array, regressor: Array, rigid_body: Array
    ) -> None:
        """Learn one sample: the target is y minus the rigid body's prediction of it."""
        if guess.inputs is None:
            if not self.standardizer.ready:
                self.standardizer.observe(stamp, x)
                return
            guess = self.predict(x, np.zeros(0))  # the scales are known since it was predicted
        if (share := self._clock.share(stamp)) > 0.0:
            self.core.forget(1.0 - share)
        learner = self.core if self._prompt is None else self._prompt
        learner.update(guess.features[0], y - rigid_body)

    def settle(self) -> None:
        """Do what the next prediction would have to do first."""
        if self._prompt is None:
            self.core.settle()

    def ask_block(self, inputs: Array, parameters: Array) -> GuessBlock:
        """:meth:`predict` of inputs (k, d), of which nothing is learned."""
        if not self.standardizer.ready:
            return self._nothing(len(inputs))
        features = self.features(self.standardizer.transform(inputs))
        values, leverages = ask_block(self.core, features)
        return GuessBlock(values, self._confidence(leverages))

    def learn_block(
        self,
        stamps: Indices,
        inputs: Array,
        y: Array,
        regressors: Array,
        rigid_body: Array,
        parameters: Array,
    ) -> tuple[GuessBlock, GuessBlock]:
        """Predict and :meth:`update` k samples in turn; there must be no memory.

        Returns what is said of each before it is learned, and before any of them is.
        """
        first = self.standardizer.observe_rows(stamps, inputs)
        known, beforehand = self._nothing(len(y)), self._nothing(len(y))
        if first == len(y):
            return known, beforehand
        targets = (y - rigid_body)[first:]
        features = self.features(self.standardizer.transform(inputs[first:]))
        self._prompt = None
        learned = learn_block(self.core, features, targets)
        self._clock.share(int(stamps[-1]))
        known.values[first:] = targets - learned.errors
        known.confidence[first:] = self._confidence(learned.leverage)
        if not first:
            beforehand = GuessBlock(learned.before, self._confidence(learned.leverage_before))
        return known, beforehand

    def _confidence(self, leverages: Array) -> Array:
        confidence: Array = 1.0 - np.minimum(self.core.penalty * leverages, 1.0)
        return confidence

    def _last_confidence(self) -> float:
        """Of the row that the recursion was asked last."""
        return 1.0 - min(self.core.penalty * self.core.leverage, 1.0)

    def _nothing(self, k: int) -> GuessBlock:
        return GuessBlock(np.zeros((k, self.core.n_outputs)), np.zeros(k))

    def start(self, data: ResidualData, fit: Fit) -> BatchErrors:
        """Go on from a model that `fit` trains in batch on `data`.

        The targets are what the rigid body leaves with the parameters that it has in the end.
        """
        # Not at the top: it needs scikit-learn, which a node would load for nothing.
        from semiparam_dynamics.learning.warm_start import (
            fitted_rows,
            fourier_start,
            recursion_from,
        )

        self.standardizer.fit(data.stamps, data.inputs)
        X = self.standardizer.transform(data.inputs)
        model = fit(self, X, data.left)
        self._frequencies, weights = fourier_start(model)

        def transform(X: Array) -> Array:
            return fourier_features(X, self._frequencies)

        self.core = recursion_from(transform, X, weights, self.core.penalty)
        self._prompt = None
        outputs, left_out = fitted_rows(self.core, transform, X)
        errors = data.left - outputs
        return BatchErrors(errors, errors / left_out[:, None])

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        state = {f"standardizer.{n}": v for n, v in self.standardizer.state().items()}
        state |= {f"core.{name}": value for name, value in self.core.state().items()}
        state |= {f"clock.{name}": value for name, value in self._clock.state().items()}
        return state | {"frequencies": self._frequencies.copy()}

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from a :meth:`state`."""
        self.standardizer.restore(part(state, "standardizer."))
        self.core.restore(part(state, "core."))
        self._prompt = None
        self._frequencies = state["frequencies"].copy()
        self._clock.restore(part(state, "clock."))
