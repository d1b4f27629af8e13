"""A recurrent network: GRU of 64 units over 50 samples (torch).

Noise on its inputs (0 or 0.1) and the number of batches of 64, at most 240, are chosen.
"""

import torch
from descent import Descent

UNITS, WINDOW = 64, 50


class Network(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.cell = torch.nn.GRU(inputs, UNITS, batch_first=True)
        self.out = torch.nn.Linear(UNITS, outputs)
        torch.nn.init.zeros_(self.out.weight)
        torch.nn.init.zeros_(self.out.bias)

    def forward(self, x):
        return self.out(self.cell(x)[0])


class Method(Descent):
    SETTINGS = (0.0, 0.1)

    def make(self, rows):
        return Network(self.scaled.X.shape[1], self.scaled.T.shape[1])

    def loss(self, model, batch, n):  # of the window's second half: the first leads up to it
        window, half = self.scaled.windows(batch, WINDOW), WINDOW // 2
        x = self.scaled.X[window]
        found = model(x + self.setting * torch.randn_like(x))[:, half:]
        known = self.scaled.T[window[:, half:]]
        return (found - known.where(known.isfinite(), found)).square().mean()

    def outputs(self, model, rows, scaled):
        parts = scaled.windows(rows, WINDOW).split(512)
        return torch.cat([model(scaled.X[part])[:, -1] for part in parts])
