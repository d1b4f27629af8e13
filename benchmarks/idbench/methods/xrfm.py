"""xRFM, a kernel machine whose metric is learned in rounds (Beaglehole et al. 2025).

At most 2000 rows, evenly; ridge (of 3), bandwidth (of 2) and rounds (at most 4) are chosen.
"""

import itertools

import numpy as np
from descent import Scaled
from xrfm import xRFM

ROWS, ROUNDS, RIDGES, BANDWIDTHS = 2000, 4, (1e-3, 1e-1, 10.0), (3.0, 10.0)
GIVEN = {"device": "cpu", "tuning_metric": "mse", "n_threads": 1, "random_state": 0}


class Method:
    def fit(self, train):
        self.scaled = s = Scaled.of(train.choosing)
        held, found = s.held[:: -(-len(s.held) // ROWS)], [(float((s.T[s.held] ** 2).mean()), ())]
        for how in itertools.product(RIDGES, BANDWIDTHS):
            model = self.learn(s.fitted, held, *how, ROUNDS)
            error = np.mean((model.predict(s.X[held]) - s.T[held].numpy()) ** 2)
            found.append((float(error), (*how, model.trees[0]["model"].best_iter)))
        _, how = min(found)
        self.scaled = s = Scaled.of(train)
        self.model = self.learn(s.taught, s.taught[:2], *how) if how else None

    def learn(self, rows, held, ridge, bandwidth, rounds):
        rows, stop = rows[:: -(-len(rows) // ROWS)], len(held) > 2
        fit = {"reg": ridge, "iters": rounds, "return_best_params": stop, "early_stop_rfm": stop}
        kernel = {"kernel": "l2", "bandwidth": bandwidth, "exponent": 1.0, "diag": False}
        how = {"model": kernel, "fit": fit}
        model = xRFM(how, verbose=False, use_temperature_tuning=False, **GIVEN)
        return model.fit(*(a[r] for r in (rows, held) for a in (self.scaled.X, self.scaled.T)))

    def predict(self, test):
        X, (_, _, mean, spread) = self.scaled.other(test).X, self.scaled.units
        return test.base + (self.model.predict(X) * spread + mean if self.model else 0.0)
