"""Parameter files and logs of any content are read, or refused in a sentence."""

from __future__ import annotations

import io
import resource
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from semiparam_dynamics.base.config_files import dump_yaml, load_yaml
from semiparam_dynamics.base.errors import (
    BagError,
    ConfigurationError,
    SampleError,
    SemiparamError,
)
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


LONG, DIGITS, DEEP = 4_000_000, "9" * 4000, "[" * 20_000 + "]" * 20_000
LISTED = "rosbag2_bagfile_information: {version: %s, relative_file_paths: [a.mcap]}"
FEATURES = '{"codebase_version": "v5.9", "fps": %s, "features": {}}'
HOSTILE = {
    "params.yaml": {
        "nested": f"seed: {DEEP}",
        "comment": "#" + LONG * "x",
        "comments": "# x\n" * (LONG // 4),
        "digits": f"seed: {DIGITS}",
        "hexadecimal": f"seed: 0x{DIGITS}",
        "text": f"seed: {LONG // 6 * 'x'}",
    },
    "metadata.yaml": {
        "nested": f"a: {DEEP}",
        "comment": "#" + LONG * "x",
        "digits": LISTED % DIGITS,
        "hexadecimal": LISTED % f"0x{DIGITS}",
        "version": LISTED % 5.9,
        "name": LISTED.replace("a.mcap", LONG // 6 * "x") % 9,
    },
    "meta/info.json": {
        "nested": f'{{"features": {DEEP}}}',
        "spaces": LONG * " " + "{}",
        "digits": FEATURES % DIGITS,
        "more digits": FEATURES % (2 * DIGITS),
        "version": FEATURES % 5.9,
    },
    "log.csv": {
        "line": LONG * "x",
        "comments": "# x\n" * (LONG // 4),
        "digits": f"t,q1,tau1\n0,{DIGITS},2\n1,{DIGITS},2\n",
        "joint": f"t,q{DIGITS},tau1\n0,1,2\n1,1,2\n",
        "columns": ",".join(f"q{k}" for k in range(100_000)) + "\n" + 99_999 * "1,",
        "quotation": 't,q1,tau1\n"' + LONG // 3 * "x,\n",
        "nested": DEEP,
    },
}


@pytest.mark.parametrize(
    ("name", "kind"), [(n, kind) for n, each in HOSTILE.items() for kind in each]
)
def test_a_file_made_to_be_costly_is_refused_in_a_sentence_and_little_memory(
    tmp_path, name, kind
) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(HOSTILE[name][kind])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(SemiparamError) as refused:
        if name == "params.yaml":
            load_yaml(path, InverseDynamicsConfig, NODE)
        elif name == "metadata.yaml":
            BagReader(tmp_path).__enter__()
        else:
            pytest.importorskip("pyarrow" if "meta" in name else "csv")
            read_log(path if name == "log.csv" else tmp_path)
    assert str(tmp_path) in str(refused.value) and len(str(refused.value)) < 2100
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 240_000  # kB


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
