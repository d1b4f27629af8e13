"""The benchmark's tables, README's table and sentences, and its picture, of the figures kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from arms import ARMS, ROOT, SIMULATED
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from output import markdown
from scipy import stats

from semiparam_dynamics.learner.curves import LOOKS
from semiparam_dynamics.offline.evaluation.protocols import ALL_MODELS
from semiparam_dynamics.offline.page import STYLE

Figures = Mapping[str, Any]
PLAIN, RIGID, BOTH = "plain_rigid_body", "rigid_body", "semiparametric"
TITLES = {
    "frozen": "Learning off (frozen)",
    "delayed": "Half a second ahead, learning (delayed)",
    "sequential": "The next sample, learning (sequential)",
}
SIMULATED_NAMES = {"sim_small": "small, simulated", "sim_seven": "seven joints, simulated"}
PICTURE = "docs/benchmark.png"
PAGES = {"README.md": False, "docs/benchmark.md": True}  # whether with the range over cases
BEGIN, END = "<!-- idbench: begin -->\n", "<!-- idbench: end -->"
CONFIDENCE, MIN_ARMS = 0.9, 4  # of the intervals over arms, two-sided


def rounded(figures: Any) -> Any:
    """The same with five digits, as they are kept."""
    if isinstance(figures, dict):
        return {name: rounded(entry) for name, entry in figures.items()}
    if isinstance(figures, list):
        return [rounded(entry) for entry in figures]
    return float(f"{figures:.5g}") if isinstance(figures, float) else figures


def arm_name(arm: str) -> str:
    """As people write it."""
    return ARMS[arm].name if arm in ARMS else SIMULATED_NAMES[arm]


def ratios(figures: Figures, arm: str, protocol: str, model: str) -> list[float]:
    """A model's errors over the plain rigid body's, of an arm's cases; none where one lacks it."""
    cases = [case.get(protocol, {}) for case in figures["cases"].get(arm, {}).values()]
    if not all(model in models and PLAIN in models for models in cases):
        return []
    return [models[model]["nmse"] / models[PLAIN]["nmse"] for models in cases]


def mean(values: Sequence[float]) -> float:
    """Geometric mean; NaN of none."""
    return float(np.exp(np.mean(np.log(values)))) if values else np.nan


def rivals(figures: Figures) -> list[str]:
    """Methods that are not this package's, in the order of their names."""
    models = {m for case in _cases(figures) for m in case.get("frozen", {})}
    return sorted(m for m in models - set(ALL_MODELS) if not m.endswith("tuned"))


def _cases(figures: Figures) -> Iterator[Figures]:
    for cases in figures["cases"].values():
        yield from cases.values()


# -------------------------------------------------------------------------------------------------
# results/idbench.md


def page(figures: Figures) -> str:
    """All tables."""
    parts = [HEAD]
    for protocol in ("frozen", "delayed", "sequential"):
        parts += [f"## {TITLES[protocol]}", by_arm(figures, protocol)]
    parts += ["## Case by case", CASES, by_case(figures)]
    if rivals(figures):
        parts += ["## Other methods, case by case", OTHERS, by_rival(figures)]
        parts += ["## Cost", COST, cost(figures)]
    if contacts := figures.get("contacts"):
        models = sorted({model for of_arm in contacts.values() for model in of_arm})
        rows = [
            [_title(m), *(f"{of[m]:.3f}" if m in of else "" for of in contacts.values())]
            for m in models
        ]
        parts += ["## Contacts", CONTACTS, markdown(("method", *map(arm_name, contacts)), rows)]
    if "settings" in figures["methods"]:
        parts += ["## With other settings than the defaults", TUNED, tuned(figures)]
    parts += [
        "## When and where",
        markdown(("method", "date", "commit", "machine"), _about(figures)),
    ]
    return "\n\n".join(parts) + "\n"


def _about(figures: Figures) -> list[list[str]]:
    return [[name, *entry.values()] for name, entry in sorted(figures["methods"].items())]


def by_arm(figures: Figures, protocol: str) -> str:
    """A row for each method: its errors relative to the plain rigid body's, by arm."""
    arms, rows = list(figures["cases"]), []
    for model in (*ALL_MODELS, *rivals(figures)):
        of_arms = {arm: mean(ratios(figures, arm, protocol, model)) for arm in arms}
        if np.isfinite(list(of_arms.values())).any():
            cells = [number(ratio) if np.isfinite(ratio) else "" for ratio in of_arms.values()]
            real = [ratio for arm, ratio in of_arms.items() if arm in ARMS]
            rows.append([_title(model), *cells, _over_arms(real)])
    heads = [f"{arm_name(arm)}, {len(figures['cases'][arm])}" for arm in arms]
    return markdown(("method; arm, cases", *heads, "real arms"), rows)


def _over_arms(of_arms: Sequence[float]) -> str:
    """Geometric mean over the arms and its interval; empty where one is missing."""
    logs = np.log(of_arms)
    if not np.isfinite(logs).all() or len(logs) < MIN_ARMS:
        return ""
    reach = (
        stats.t.ppf(0.5 * (1.0 + CONFIDENCE), len(logs) - 1) * logs.std(ddof=1) / len(logs) ** 0.5
    )
    middle, low, high = np.exp(logs.mean() + reach * np.array([0.0, -1.0, 1.0]))
    return f"{number(middle)} ({number(low)} to {number(high)})"


def by_case(figures: Figures) -> str:
    """A row for each case: errors of this package's models, the worst joint, and coverage."""
    rows = []
    for arm, cases in figures["cases"].items():
        for name, case in cases.items():
            cells = [f"{arm_name(arm)}, {name}", str(case["samples"])]
            for protocol in ("frozen", "delayed"):
                models, both = case[protocol], case[protocol][BOTH]
                cells += [number(models[model]["nmse"]) for model in (PLAIN, RIGID, BOTH)]
                cells += [f"{both['worst']:.2f}", "{:.2f} ({:.2f})".format(*both["covered"])]
            rows.append(cells)
    head = ["plain", "rigid body", "both", "worst joint", "covered"]
    return markdown(["case", "samples", *head, *(f"delayed: {name}" for name in head)], rows)


def by_rival(figures: Figures) -> str:
    """A row for each case: frozen errors of the rigid body and of other methods on it."""
    models, rows = (RIGID, BOTH, *rivals(figures)), []
    for arm, cases in figures["cases"].items():
        for name, case in cases.items():
            found = [case["frozen"].get(model) for model in models]
            cells = [number(figures["nmse"]) if figures else "" for figures in found]
            rows.append([f"{arm_name(arm)}, {name}", *cells])
    return markdown(("case", "rigid body", "both", *models[2:]), rows)


def cost(figures: Figures) -> str:
    """Seconds that each other method took to learn a case: mean and most."""
    rows = []
    for model in rivals(figures):
        seconds = [
            case["frozen"][model]["seconds"] for case in _cases(figures) if model in case["frozen"]
        ]
        rows.append([model, f"{np.mean(seconds):.1f}", f"{max(seconds):.1f}"])
    return markdown(("method", "mean [s]", "most [s]"), rows)


def tuned(figures: Figures) -> str:
    """The package with defaults and with other settings: nmse, by arm, means over cases."""
    rows = []
    for arm, cases in figures["cases"].items():
        if all(f"{BOTH}, tuned" in case.get("frozen", {}) for case in cases.values()):
            cells = [
                number(float(np.mean([case[protocol][model]["nmse"] for case in cases.values()])))
                for protocol in ("frozen", "delayed")
                for model in (RIGID, f"{RIGID}, tuned", BOTH, f"{BOTH}, tuned")
            ]
            rows.append([arm_name(arm), *cells])
    head = ["rigid body", "rigid body, set", "both", "both, set"]
    return markdown(["arm", *head, *(f"delayed: {name}" for name in head)], rows)


def number(value: float) -> str:
    """Three digits, and four decimals at most."""
    decimals = 4 if value < 0.0995 else 3 if value < 0.9995 else 2 if value < 9.995 else 0
    return f"{value:.{decimals}f}"


def _title(model: str) -> str:
    return LOOKS[model].name if model in LOOKS else f"{model} on the rigid body"


HEAD = """\
# IDBench

Written by `python benchmarks/idbench DATA --out FOLDER`; docs/benchmark.md says how to enter.

Mean squared errors relative to those of a rigid body with viscous and Coulomb friction alone
(*plain rigid body*) on the same samples: geometric means over an arm's cases. *Real arms*: over
these, and in brackets the interval that the choice of these arms explains (Student, 90 %). *Least
squares* and the rigid body, on which other methods are, have all kinds of friction of this
package. All with defaults, whatever the arm."""
CASES = """\
Normalised mean squared errors, means over joints, as `semiparam evaluate` prints them. *Worst
joint*: of the semiparametric relative to the rigid body. *Covered*: within two standard
deviations, mean (worst joint)."""
OTHERS = "Normalised mean squared errors with learning off, means over joints."
CONTACTS = """\
Simulated arms, learning off; the hand is pushed for half a second of every two, by 1 to 20 N in
any direction. Area under the receiver operating characteristic of calling a sample a contact by
its largest error, each axis in units of what the rigid body leaves of what is learned: 1 is
perfect, 0.5 chance."""
COST = """\
Of one thread; a method's choice of settings, on a part of what it learns, is included."""
TUNED = """\
`config/robots/` has settings of three arms. They were chosen with these logs in view, tested
parts included, so that these figures do not measure what a user gets. Normalised mean squared
errors, means over joints and cases; other filters measure other signals."""


# -------------------------------------------------------------------------------------------------
# README.md, docs/benchmark.md and the picture


def publish(figures: Figures, root: Path = ROOT) -> None:
    """Write the parts of the pages between the marks, and the picture."""
    for name, ranges in PAGES.items():
        path = root / name
        path.write_text(published(path.read_text(), figures, ranges))
    draw(figures, root / PICTURE)


def published(text: str, figures: Figures, ranges: bool) -> str:
    """A page with the part between the marks as these figures have it."""
    before, after = text.index(BEGIN) + len(BEGIN), text.index(END)
    return text[:before] + f"\n{summary(figures, ranges)}\n\n" + text[after:]


def summary(figures: Figures, ranges: bool) -> str:
    """README's table, and the sentences on it."""
    arms = [arm for arm in figures["cases"] if arm not in SIMULATED]
    head = "arm, cases", "learning: rigid body", "both", "learning off: rigid body", "both"
    rows = []
    for arm in arms:
        of_models = [
            ratios(figures, arm, protocol, model)
            for protocol in ("delayed", "frozen")
            for model in (RIGID, BOTH)
        ]
        shown = [_spread(values) if ranges else f"{mean(values):.2f}" for values in of_models]
        rows.append([f"{arm_name(arm)}, {len(of_models[0])}", *shown])
    return f"{markdown(head, rows)}\n\n{sentences(figures, arms)}"


def _spread(values: Sequence[float]) -> str:
    """Geometric mean, and least to most where these differ."""
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return f"{mean(values):.2f}" + (f" ({low} to {high})" if low != high else "")


def sentences(figures: Figures, arms: Sequence[str]) -> str:
    """In words: single joints, and other methods."""
    worst = {arm: _worst(figures, arm) for arm in arms}
    first, second = sorted(worst.values(), reverse=True)[:2]
    named = next(arm_name(arm) for arm, ratio in worst.items() if ratio == first)
    gains = [mean(ratios(figures, arm, "frozen", BOTH)) / _best(figures, arm) for arm in arms]
    better, others = sum(gain > 1.0 for gain in gains), mean(gains)
    return (
        f"The kernel model makes single joints worse, {named}'s by up to {first:.2f} times, "
        f"others' by {second:.2f}. With learning off, the best of {len(rivals(figures))} other "
        f"methods on the same rigid body, chosen for each arm afterwards, was better on "
        f"{better} of {len(arms)} arms; this package has {others:.2f} times its error."
    )


def _worst(figures: Figures, arm: str) -> float:
    cases = figures["cases"][arm].values()
    return max(
        float(case[protocol][BOTH]["worst"]) for case in cases for protocol in ("frozen", "delayed")
    )


def _best(figures: Figures, arm: str) -> float:
    return min(mean(ratios(figures, arm, "frozen", model)) for model in rivals(figures))


def digest(figures: Figures) -> str:
    """What the picture was made of."""
    return hashlib.sha256(json.dumps(figures["cases"], sort_keys=True).encode()).hexdigest()


def draw(figures: Figures, path: Path) -> None:
    """A row for each arm: errors relative to the plain rigid body's, and their range over cases."""
    arms = [arm for arm in figures["cases"] if arm not in SIMULATED]
    with rc_context(STYLE):
        figure = Figure(figsize=(9.0, 4.2), layout="constrained", facecolor="white")
        FigureCanvasAgg(figure)
        panels = figure.subplots(1, 2, sharex=True, sharey=True)
        for axes, protocol in zip(panels, ("delayed", "frozen"), strict=True):
            axes.set_title(TITLES[protocol])
            axes.axvline(1.0, color=LOOKS[PLAIN].color, label="plain rigid body")
            for shift, model in ((-0.17, RIGID), (0.17, BOTH)):
                look = LOOKS[model]
                values = [ratios(figures, arm, protocol, model) for arm in arms]
                rows = np.arange(len(arms)) + shift
                axes.hlines(
                    rows, [min(v) for v in values], [max(v) for v in values], color=look.color
                )
                label = "both" if model == BOTH else "rigid body"
                axes.plot([mean(v) for v in values], rows, "o", color=look.color, label=label)
            if protocol == "frozen" and rivals(figures):
                best = [_best(figures, arm) for arm in arms]
                label = "best other method, chosen afterwards"
                axes.plot(
                    best, np.arange(len(arms)), "D", color="#8c959f", markersize=4, label=label
                )
            axes.set_xscale("log")
            axes.set_xlabel("squared error relative to the plain rigid body's")
        axes.set_yticks(range(len(arms)), map(arm_name, arms))
        axes.invert_yaxis()
        ticks = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        figure.legend(
            *axes.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False
        )
        figure.savefig(path, dpi=110, metadata={"Description": digest(figures)})
