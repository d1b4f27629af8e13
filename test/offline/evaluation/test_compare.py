"""Comparison of evaluations: ratios, settings, and what keeps figures from being compared."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path

import numpy as np
import pytest

from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.parameters import from_flat
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.cli.main import main
from semiparam_dynamics.offline.evaluation.bags import Bags, evaluate_bags
from semiparam_dynamics.offline.evaluation.comparison import (
    Result,
    comparison_text,
    mean_ratio,
    obstacles,
    ratios,
    read_result,
    settings_that_differ,
    verdicts,
)
from semiparam_dynamics.offline.evaluation.protocols import ALL_MODELS
from semiparam_dynamics.samples.bag_writer import write_measurements

from ...dynamics.arms import FEW_CENTERS, URDF, measurements, small_arm

AXES = ["shoulder", "elbow"]


def values(**rmse: list[float]) -> dict:
    models = {name: {"rmse": rmse.get(name, [1.0, 2.0])} for name in ALL_MODELS}
    parameters = {"residual": "nystrom", "filter.cutoff": 10.0}
    bag = {"path": "logs/monday", "begin": 5, "seconds": 60.0, "states": "f0"}
    origin = {"tested": [bag], "trained": [], "urdf": "arm.urdf", "urdf_sha256": "aa", "model": ""}
    head = {"samples": 100, "target": "effort", "axes": AXES, "parameters": parameters}
    scores = {"delayed": models, "frozen": copy.deepcopy(models)}
    return {**head, "scores": scores, "scored": {}, "origin": origin, "version": "0.1.0"}


FIRST = Result("before", values())


def other(name: str = "after", **rmse: list[float]) -> Result:
    return Result(name, copy.deepcopy(values(**rmse)))


def test_ratios_are_of_squared_errors() -> None:
    after = other(semiparametric=[0.5, 3.0])
    found = ratios(FIRST, after, "delayed", "semiparametric")
    np.testing.assert_allclose(found, [0.25, 2.25])
    assert mean_ratio(found) == pytest.approx(np.sqrt(0.25 * 2.25))
    assert not obstacles([FIRST, after]) and not settings_that_differ([FIRST, after])
    text = comparison_text([FIRST, after])
    assert "Delayed: after has 0.750 × the squared error (worst axis elbow: 2.25 ×)" in text
    assert "no setting differs" in text


def test_other_settings_are_listed() -> None:
    after = other()
    after.values["parameters"]["residual"] = "random_fourier"
    assert settings_that_differ([FIRST, after]) == {"residual": ["nystrom", "random_fourier"]}
    assert not obstacles([FIRST, after])
    after.values["parameters"]["filter.cutoff"] = 5.0
    assert "filter.cutoff" in obstacles([FIRST, after])[0]


def test_joints_that_are_written_out_are_no_obstacle() -> None:
    open_, named = other("open"), other("named")
    open_.values["parameters"]["joints"], named.values["parameters"]["joints"] = [], AXES
    assert "joints" in settings_that_differ([open_, named])
    assert not obstacles([open_, named])
    named.values["axes"] = AXES[::-1]
    found = obstacles([open_, named])
    assert "other axes" in found[0] and "treated otherwise (joints)" in found[1]


def test_the_command_prints_what_compares(tmp_path: Path, capsys) -> None:
    places = [str(tmp_path / name) for name in ("one", "two")]
    for place in places:
        Path(place).mkdir()
        Path(place, "results.json").write_text(json.dumps(values()))
    assert main(["compare", *places]) == 0
    assert "the same errors" in capsys.readouterr().out
    assert main(["compare", places[0]]) == 2
    assert main(["compare", places[0], str(tmp_path / "none")]) == 2
    assert "semiparam evaluate" in capsys.readouterr().err


def test_axes_without_errors_have_no_part() -> None:
    after = other(nonparametric=[None, 1.0])
    assert mean_ratio(ratios(FIRST, after, "frozen", "nonparametric")) == pytest.approx(0.25)
    none, part = (other(urdf=rmse) for rmse in ([None, None], [None, 1.0]))
    assert re.search("Delayed +URDF +–\n", comparison_text([FIRST, none]))
    assert re.search(r"URDF +0\.250 +0\.250 to 0\.250\n", comparison_text([FIRST, part]))


def of(**changed: object) -> Result:
    """A result of other files."""
    result = other()
    result.values["origin"].update(changed)
    return result


def test_bags_and_urdfs_are_compared_by_what_is_in_them() -> None:
    elsewhere = {"path": "copy", "begin": 5, "seconds": 60.0, "states": "f0"}
    assert not obstacles([FIRST, of(tested=[elsewhere], urdf="/tmp/arm.urdf")])
    for changed in ({"begin": 6}, {"states": "f1"}):
        later = of(tested=[elsewhere | changed])
        assert "other bags (copy) than before (logs/monday)" in obstacles([FIRST, later])[0]
    assert "another URDF" in obstacles([FIRST, of(urdf_sha256="bb")])[0]
    unnamed = other()
    unnamed.values["origin"] = None  # of an evaluation in Python
    assert obstacles([FIRST, unnamed]) == ["after names no bags and URDF: they may be others."]


def test_what_was_learned_before_and_the_version_are_told_and_no_obstacle() -> None:
    trained = of(trained=[{"path": "logs/sunday", "begin": 1, "seconds": 2.0}])
    trained.values["version"] = "0.2.0"
    assert settings_that_differ([FIRST, trained]) == {
        "semiparam_dynamics": ["0.1.0", "0.2.0"],
        "bags learned before": ["", "sunday"],
    }
    assert not obstacles([FIRST, trained])


def test_axes_are_compared_by_their_names() -> None:
    """Of a result with other axes, those that both have; it is told that there are others."""
    fewer = other()
    fewer.values["axes"] = ["elbow"]
    for models in fewer.values["scores"].values():
        for scores in models.values():
            scores["rmse"] = [1.0]
    found = ratios(FIRST, fewer, "delayed", "semiparametric")
    assert np.isnan(found[0]) and found[1] == pytest.approx(0.25)
    assert "worst axis elbow: 0.250 ×" in comparison_text([FIRST, fewer])
    assert "other axes" in comparison_text([fewer, FIRST])


def test_an_axis_that_was_never_measured_has_no_part_in_the_words() -> None:
    first = other("before", semiparametric=[1.0, None])
    same, worse = (other(semiparametric=[x, None]) for x in (1.0, 2.0))
    assert all(one.endswith("has the same errors.") for one in verdicts([first, same]))
    assert "worst axis shoulder: 4.00 ×" in verdicts([first, worse])[0]


def test_every_result_that_does_not_compare_is_told() -> None:
    renamed = other("renamed")
    renamed.values["axes"] = ["a", "b"]
    found = obstacles([FIRST, renamed, of(urdf_sha256="bb")])
    assert len(found) == 2 and "other axes" in found[0] and "another URDF" in found[1]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("axes", None),
        ("scores", {"delayed": {"semiparametric": {"rmse": ["x", "y"]}}}),
        ("parameters", None),
        ("scored", {"frozen": "many"}),
        ("origin", {}),
        ("origin", {"tested": [{}], "trained": [], "urdf": "", "urdf_sha256": "", "model": ""}),
    ],
)
def test_damaged_results_are_refused(tmp_path: Path, key: str, value: object) -> None:
    path = tmp_path / "results.json"
    for damaged in ({**values(), key: value}, [], {}):
        path.write_text(json.dumps(damaged))
        with pytest.raises(ConfigurationError, match="is damaged, or not the results.json"):
            read_result(tmp_path)


def test_results_of_an_evaluation_are_whole(tmp_path: Path, effort_results: Path) -> None:
    assert read_result(effort_results).values["origin"] is None
    (tmp_path / "results.json").write_text(json.dumps(values()))
    assert read_result(tmp_path).values["origin"]["tested"]


def test_results_without_scores_in_common_do_not_compare() -> None:
    none, frozen = other("none"), other("frozen")
    none.values["scores"].clear()
    del frozen.values["scores"]["delayed"]
    assert obstacles([FIRST, none]) == ["none and before have no scores in common."]
    assert not obstacles([FIRST, frozen])
    assert "have no scores in common" in comparison_text([FIRST, none])


def test_frozen_with_and_without_training_is_of_other_samples(tmp_path: Path) -> None:
    """Without, it is scored on the last 40 % of the bag, and else on all of it."""
    model, bag = small_arm(), tmp_path / "bag"
    urdf, moving = URDF.read_text(), list(measurements(model, 3.0))
    write_measurements(bag, model.joint_names, moving, "effort", robot_description=urdf)
    config = from_flat(InverseDynamicsConfig, {"nystrom.window": 1.0} | FEW_CENTERS)
    found = []
    for name, train in (("alone", ()), ("trained", (bag,))):
        results = evaluate_bags(Bags((bag,), train), config).results()
        found.append(Result(name, results))
    n, whole = found[0].values["scored"]["frozen"], found[1].values["scored"]["frozen"]
    assert whole == found[1].values["scored"]["sequential"] > 2 * n
    told = f"Frozen: trained was scored on {whole} samples, alone on {n}: they do not compare."
    assert told in obstacles(found)
    text = comparison_text(found)
    assert told in text and "Delayed: trained has" in text and "Frozen: trained has" not in text
    # Others may lack what stands before any motion.
    few = {**found[0].values["scored"], "frozen": n - 1}
    assert not obstacles([found[0], Result("few", {**found[0].values, "scored": few})])
