"""The pictures of figures 4.1 and 4.2, from what nystrom_path.py measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from common import pyplot

from semiparam_dynamics.arrays import Array

if TYPE_CHECKING:
    from nystrom_path import Panel


def draw_4_1(figures: list[tuple[Panel, list[int], list[float], Array]], path: Path) -> None:
    plt = pyplot()
    fig, axes = plt.subplots(1, len(figures), figsize=(4.6 * len(figures), 3.8), squeeze=False)
    for ax, (panel, sizes, penalties, errors) in zip(axes[0], figures, strict=True):
        # Colours end at the upper tenth: a few settings would hide all the others.
        image = ax.pcolormesh(
            sizes,
            np.log10(penalties),
            errors.T,
            shading="nearest",
            cmap="viridis",
            vmin=errors.min(),
            vmax=np.quantile(errors, 0.9),
        )
        i, j = np.unravel_index(errors.argmin(), errors.shape)
        ax.plot(sizes[i], np.log10(penalties[j]), "wx", label="smallest")
        for m, penalty, _ in panel.claims:
            if m <= sizes[-1]:
                ax.plot(m, np.log10(penalty), "ro", mfc="none", label="thesis 4.2.4", clip_on=False)
        ax.set(title=panel.name, xlabel="m", ylabel="log10 lambda")
        words = "classification error" if panel.error == "classification" else "RMSE"
        fig.colorbar(image, ax=ax, label=f"validation {words}", extend="max")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    fig.legend(unique.values(), unique.keys(), loc="lower center", ncols=2, facecolor="lightgrey")
    fig.tight_layout(rect=(0, 0.07, 1, 1))
    fig.savefig(path, dpi=120)


def draw_4_2(rows: list[tuple[int, float, float]], path: Path) -> None:
    plt = pyplot()
    fig, ax = plt.subplots(figsize=(5, 3.8))
    sizes, once, each = zip(*rows, strict=True)
    ax.plot(sizes, each, "s-", label="a fit for each m")
    ax.plot(sizes, once, "o-", label="one pass")
    ax.set(xlabel="largest m", ylabel="seconds", yscale="log", title="cpusmall, model selection")
    ax.legend()
    fig.tight_layout()
    fig.savefig(path, dpi=120)
