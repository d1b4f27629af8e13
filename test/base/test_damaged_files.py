"""Parameter files and logs of any content are read, or refused in a sentence."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from semiparam_dynamics.base.config_files import dump_yaml, load_yaml
from semiparam_dynamics.base.errors import BagError, ConfigurationError, SampleError
from semiparam_dynamics.base.parameters import parameters
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.conversion.convert import read_log
from semiparam_dynamics.samples.bag import BagReader

NODE = "inverse_dynamics"
WHOLE = dump_yaml(InverseDynamicsConfig(), NODE)
NAMES = [entry.name for entry in parameters(InverseDynamicsConfig)]
TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
SETTINGS = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


def read_parameters(path: Path, text: bytes) -> None:
    path.write_bytes(text)
    try:
        config = load_yaml(path, InverseDynamicsConfig, NODE)
    except ConfigurationError as error:
        assert str(path) in str(error)
    else:
        assert isinstance(config, InverseDynamicsConfig)


@given(st.sampled_from(NAMES), TREES)
@SETTINGS
def test_a_parameter_of_any_value(tmp_path, name, value) -> None:
    import yaml

    text = yaml.safe_dump({NODE: {"ros__parameters": {name: value}}}, allow_unicode=True)
    read_parameters(tmp_path / "params.yaml", text.encode("utf-8", "replace"))


@given(st.floats(0, 1), st.binary(max_size=4), st.integers(0, 6))
@SETTINGS
def test_a_parameter_file_with_other_bytes_in_it(tmp_path, at, data, removed) -> None:
    whole = WHOLE.encode()[:4000]
    place = round(at * len(whole))
    read_parameters(tmp_path / "params.yaml", whole[:place] + data + whole[place + removed :])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: &a {b: *a}", "aliases .* line 1"),
        ("a: &a {b: 1}\nc: {<<: *a}", "aliases .* line 2"),
        ("[" * 3000, "broken YAML"),
        ("a: " + "{b: " * 3000, "broken YAML"),
        ("filter: {cutoff: !!python/object/apply:os.getcwd []}", "broken YAML"),
    ],
)
def test_yaml_that_is_more_than_it_seems_is_refused(tmp_path, text, message) -> None:
    path = tmp_path / "params.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=message):
        load_yaml(path, InverseDynamicsConfig, NODE)


@pytest.mark.parametrize("text", ["[" * 3000, "a: &a {b: *a}", "rosbag2_bagfile_information: 1"])
def test_metadata_that_is_no_list_of_files_is_passed_over(tmp_path, text) -> None:
    (tmp_path / "metadata.yaml").write_text(text)
    with pytest.raises(BagError, match="no rosbag2 folder"), BagReader(tmp_path):
        pass


def log(compressed: bool) -> bytes:
    file = io.BytesIO()
    save = np.savez_compressed if compressed else np.savez
    q = np.linspace(0.0, 1.0, 12).reshape(6, 2)
    save(file, t=0.01 * np.arange(6.0), q=q, tau=q, names=np.array(["a", "b"]))
    return file.getvalue()


LOGS = [log(False), log(True)]


@given(
    st.sampled_from(LOGS),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=4),
    st.just(1.0) | st.floats(0, 1),
)
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_log_with_other_bytes_in_it_or_cut_short(tmp_path, data, changes, end) -> None:
    damaged = bytearray(data)
    for at, byte in changes:
        damaged[min(round(at * len(data)), len(data) - 1)] = byte
    path = tmp_path / "log.npz"
    path.write_bytes(damaged[: round(end * len(data))])
    try:
        found = read_log(path)
    except SampleError as error:
        assert str(path) in str(error)
    else:
        assert np.isfinite(found.q).all() and len(found.time) == len(found.q)
        assert (np.diff(found.time) > 0).all()


@given(TREES, st.sampled_from(["t", "dt", "q", "dq", "tau", "wrench", "names"]))
@SETTINGS
def test_a_log_with_an_array_of_anything(tmp_path, value, name) -> None:
    path = tmp_path / "log.npz"
    arrays = {"dt": np.array(0.1), "q": np.zeros((3, 2)), "tau": np.ones((3, 2))}
    try:
        arrays[name] = np.array(value)
        np.savez(path, **arrays)
    except (ValueError, UnicodeEncodeError):  # ragged lists make no array
        return
    try:
        read_log(path)
    except SampleError as error:
        assert str(path) in str(error)
