"""Tables of text: columns told by their names, and every other table refused in a sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from semiparam_dynamics.base.errors import SampleError
from semiparam_dynamics.offline.conversion.convert import convert_log, read_log
from semiparam_dynamics.offline.conversion.csv_log import read_csv

ROWS = [[0.0, 0.1, 0.2, 1.0, 2.0], [0.01, 0.3, 0.4, 3.0, 4.0], [0.02, 0.5, 0.6, 5.0, 6.0]]


def table(header: str, rows: list[list[float]] | None = None, separator: str = ",") -> str:
    lines = [separator.join(map(repr, row)) for row in (ROWS if rows is None else rows)]
    return "\n".join([header, *lines]) + "\n"


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ("t,q_elbow,q_wrist,tau_elbow,tau_wrist", ("elbow", "wrist")),
        ("time,position[elbow],position[wrist],effort[elbow],effort[wrist]", ("elbow", "wrist")),
        ("timestamp,actual_q_0,actual_q_1,tau_0,tau_1", ()),
        ("time,actual_q,wanted_q,actual_torque,wanted_torque", ("actual", "wanted")),
        ("Time (s),elbow.position,wrist.position,elbow.effort,wrist.effort", ("elbow", "wrist")),
        ("timestamp,elbow_pos,wrist_pos,elbow_torque,wrist_torque", ("elbow", "wrist")),
        ("t,q1,q2,tau1,tau2", ()),
        ("t,Q1,Q2,Tau1,Tau2", ()),
        ("# t,q_1,q_2,tau_1,tau_2", ()),
        ("stamp,pos joint_1,pos joint_2,eff joint_1,eff joint_2", ("joint_1", "joint_2")),
        (
            "__time,/joint_states/elbow/position,/joint_states/wrist/position"
            ",/joint_states/elbow/effort,/joint_states/wrist/effort",
            ("elbow", "wrist"),
        ),
        ("t,left/a/pos,right/a/pos,left/a/eff,right/a/eff", ("left/a", "right/a")),
        ("time (s), q joint 1, q joint 2, tau joint 1, tau joint 2", ("joint 1", "joint 2")),
        ("t,q_tx,q_fy,tau_tx,tau_fy", ("tx", "fy")),
        ("t,q_x,q_y,torque_x,torque_y", ("x", "y")),
    ],
)
def test_columns_are_told_by_their_names(header: str, names: tuple[str, ...]) -> None:
    arrays, found, unused = read_csv(Path("log.csv"), table(header))
    rows = np.array(ROWS)
    assert found == names and unused == []
    np.testing.assert_array_equal(arrays["t"], rows[:, 0])
    np.testing.assert_array_equal(arrays["q"], rows[:, 1:3])
    np.testing.assert_array_equal(arrays["tau"], rows[:, 3:])


@pytest.mark.parametrize("separator", [",", ";", "\t", " "])
def test_separators(separator: str) -> None:
    header = separator.join(["t", "q1", "q2", "tau1", "tau2"])
    arrays, _, _ = read_csv(Path("log.csv"), table(header, separator=separator))
    np.testing.assert_array_equal(arrays["tau"], np.array(ROWS)[:, 3:])


def test_units_in_brackets_and_blanks_in_names() -> None:
    header = (
        "Time [ms],Joint 1 pos [deg],Joint 2 pos (rad),Joint 1 torque [Nm],Joint 2 torque [N m]"
    )
    arrays, names, unused = read_csv(Path("log.csv"), table(header))
    rows = np.array(ROWS)
    assert names == ("Joint 1", "Joint 2") and unused == []
    np.testing.assert_allclose(arrays["t"], rows[:, 0] / 1000.0)
    np.testing.assert_allclose(arrays["q"], rows[:, 1:3] * [np.pi / 180.0, 1.0])
    np.testing.assert_array_equal(arrays["tau"], rows[:, 3:])
    bare, _, _ = read_csv(Path("log.csv"), table(header.replace(" (rad)", "")), degrees=True)
    np.testing.assert_allclose(bare["q"], np.deg2rad(rows[:, 1:3]))
    np.testing.assert_array_equal(bare["degrees"][0], [0, 1])


@pytest.mark.parametrize(
    ("unit", "factor"),
    [
        *((unit, 1.0) for unit in ("Nm", "N m", "N·m", "N.m", "N*m", "N-m", "nm", "NM", "N")),
        *((unit, 1e-3) for unit in ("Nmm", "N mm", "N·mm", "N.mm", "mNm", "mN m", "mN·m", "NMM")),
        ("N cm", 1e-2),
        ("kN m", 1e3),
    ],
)
def test_efforts_are_scaled_by_their_unit(unit: str, factor: float) -> None:
    arrays, names, _ = read_csv(Path("x"), table(f"t,q1,q2,tau1 [{unit}],tau2 ({unit})"))
    assert names == ()
    np.testing.assert_allclose(arrays["tau"], np.array(ROWS)[:, 3:] * factor)


@pytest.mark.parametrize(
    ("q", "q_factor", "dq", "dq_factor"),
    [
        (" [mrad]", 1e-3, " [mrad/s]", 1e-3),
        (" [rev]", 2 * np.pi, " [rpm]", np.pi / 30),
        (" [mm]", 1e-3, " [mm/s]", 1e-3),
        ("_deg", np.pi / 180, "_rpm", np.pi / 30),
        (" [Deg]", np.pi / 180, " [deg / s]", np.pi / 180),
    ],
)
def test_positions_and_velocities_are_scaled_by_their_unit(q, q_factor, dq, dq_factor) -> None:
    rows = [row[:4] for row in ROWS]
    arrays, names, _ = read_csv(Path("x"), table(f"t,q1{q},dq1{dq},tau1", rows))
    assert names == ()
    np.testing.assert_allclose(arrays["q"][:, 0], np.array(ROWS)[:, 1] * q_factor)
    np.testing.assert_allclose(arrays["dq"][:, 0], np.array(ROWS)[:, 2] * dq_factor)
    np.testing.assert_array_equal(arrays["tau"][:, 0], np.array(ROWS)[:, 3])


def test_wrenches_are_scaled_by_their_unit() -> None:
    rows = [[0.01 * k, 0.1 * k, *range(k, k + 6)] for k in range(3)]
    header = "t,q1,fx [kN],fy [N],fz [mN],tx [N mm],ty [Nm],tz [mNm]"
    arrays, _, _ = read_csv(Path("x"), table(header, rows))
    factors = [1e3, 1.0, 1e-3, 1e-3, 1.0, 1e-3]
    np.testing.assert_allclose(arrays["wrench"], np.array(rows)[:, 2:] * factors)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("t,q1,q2,tau1 [mA],tau2 [mA]", r"'mA' of column tau1 \[mA\] is not known: Nm, .*, N, "),
        ("t,q1,q2,tau1 [MNm],tau2 [MNm]", "unit 'MNm' of column tau1"),  # mega
        ("t,q1,q2,tau1 [rad],tau2 [rad]", "unit 'rad' of column tau1"),
        ("t,q1 (ticks),q2 (ticks),tau1,tau2", r"'ticks' of column q1 \(ticks\) .*: rad, "),
        ("t,q_a [],q_b,tau_a,tau_b", r"unit '' of column q_a"),
        ("t [min],q1,q2,tau1,tau2", r"'min' of column t \[min\] is not known: s, sec, ms, us, ns"),
        ("t,q1,q2,effort_1_mA,effort_2_mA", r"not of 1, 2, but of 1_mA, 2_mA \(a unit stands in"),
    ],
)
def test_units_that_are_not_known_are_refused(header: str, message: str) -> None:
    with pytest.raises(SampleError, match=message):
        read_csv(Path("x"), table(header))


def test_brackets_that_hold_no_unit() -> None:
    header = "t,position[mA],effort[mA],/joint_states/position[0],q_b (raw)"
    with pytest.raises(SampleError, match=r"unit 'raw' of column q_b \(raw\)"):
        read_csv(Path("x"), table(header))
    arrays, names, unused = read_csv(Path("x"), table(header.replace("q_b (raw)", "volt [V]")))
    assert names == ("mA",) and unused == ["/joint_states/position[0]", "volt [V]"]
    np.testing.assert_array_equal(arrays["tau"][:, 0], np.array(ROWS)[:, 2])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_letters_beyond_ascii(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "log.csv"
    text = "t,q_Schlüssel [°],dq_Schlüssel [°/s],tau_Schlüssel [N·m]\n0,90,180,1\n0.1,180,90,2\n"
    path.write_text(text, encoding=encoding)
    log = read_log(path)
    assert log.names == ("Schlüssel",)
    np.testing.assert_allclose(log.q[:, 0], [np.pi / 2, np.pi])
    np.testing.assert_array_equal(log.tau, [[1.0], [2.0]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "t,q1 [°],tau1\n0,1,2\n".encode("latin-1"),
            r"than UTF-8: byte 0xb0 in line 1 after 't,q1 \[' is none of it; save the file as UTF",
        ),
        (
            b"t,q1,tau1\n" + b"0,1,2\n" * 100 + "# Prüfstand\n".encode("latin-1"),
            "byte 0xfc in line 102 after '# Pr'",
        ),
        (b"\xff\xfet\x00,\x00q", "is damaged text in UTF-16: truncated data"),  # cut in a letter
    ],
)
def test_other_encodings_are_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(content)
    with pytest.raises(SampleError, match=message) as told:
        read_log(path)
    assert "MATLAB" not in str(told.value)


def test_the_efforts_order_is_that_of_the_positions() -> None:
    arrays, names, _ = read_csv(Path("x"), table("t,q_b,q_a,tau_a,tau_b"))
    assert names == ("b", "a")
    np.testing.assert_array_equal(arrays["tau"], np.array(ROWS)[:, [4, 3]])


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize(
    ("q", "tau"),
    [
        ("q{}", "tau{}"),
        ("q_{} [deg]", "effort[{}]"),
        ("/joint_states/{}/position", "/joint_states/{}/effort"),
    ],
)
def test_numbered_joints_are_ordered_by_number(first: int, q: str, tau: str) -> None:
    numbers = [first + k for k in range(11)]
    by_text = sorted(numbers, key=str)  # 1, 10, 11, 2, ...
    names = [*map(q.format, by_text), *map(tau.format, reversed(numbers))]
    values = [*by_text, *(100.0 + k for k in reversed(numbers))]
    rows = [[0.01 * k, *values] for k in range(3)]
    arrays, found, _ = read_csv(Path("x"), table(",".join(["t", *names]), rows), degrees=True)
    assert found == ()
    np.testing.assert_allclose(arrays["q"][0], np.deg2rad(numbers))
    np.testing.assert_array_equal(arrays["tau"][0], [100.0 + k for k in numbers])


@pytest.mark.parametrize("numbers", [(1, 2, 4), (2, 3, 4), (0, 2, 3), (1, 2, "02")])
def test_numbers_that_leave_a_joint_out_are_refused(numbers: tuple[object, ...]) -> None:
    header = ",".join(["t", *(f"q{n}" for n in numbers), *(f"tau{n}" for n in numbers)])
    rows = [[0.01 * k] + [1.0] * 6 for k in range(3)]
    with pytest.raises(SampleError, match="without a gap; .* such as q_elbow") as told:
        read_csv(Path("x"), table(header, rows))
    assert f"joints {', '.join(str(int(str(n))) for n in numbers)}:" in str(told.value)


@pytest.mark.parametrize(
    ("unit", "scale"), [("time_ms", 1e-3), ("stamp_ns", 1e-9), ("t [us]", 1e-6)]
)
def test_times_in_other_units(unit: str, scale: float) -> None:
    rows = [[row[0] / scale, *row[1:]] for row in ROWS]
    arrays, _, _ = read_csv(Path("x"), table(f"{unit},q1,q2,tau1,tau2", rows))
    np.testing.assert_allclose(arrays["t"], [0.0, 0.01, 0.02])


def test_wrenches_and_columns_that_are_not_used() -> None:
    rows = [[0.01 * k, 0.1 * k, *range(k, k + 6), 7.0] for k in range(3)]
    arrays, _, unused = read_csv(
        Path("x"), table("t,q1,force_x,force_y,wrench.fz,mx,torque.y,tz,temperature", rows)
    )
    assert unused == ["temperature"]
    empty = [[*row[:-1], np.nan] for row in rows]
    read_csv(Path("x"), table("t,q1,fx,fy,fz,tx,ty,tz,temperature", empty))  # what isn't used may
    np.testing.assert_array_equal(arrays["wrench"], np.array(rows)[:, 2:8])
    arrays, _, unused = read_csv(Path("x"), table("t,q_1,tau_1,tau_desired_1,dq_1"))
    assert unused == ["tau_desired_1"]  # no position is of such a joint
    _, _, unused = read_csv(Path("x"), table("t,q_1,tau_1,qd,angle"))
    assert unused == ["qd", "angle"]
    np.testing.assert_array_equal(arrays["tau"], np.array(ROWS)[:, 2:3])


@pytest.mark.parametrize(
    ("above", "header"),
    [
        ("# my log\n", "t,q1,q2,tau1,tau2"),
        ("# made by: x, y, z, u, v\n\n%% 7 joints\n", "t,q1,q2,tau1,tau2"),
        ("# my log\n", "# t,q1,q2,tau1,tau2"),
        ("", "# t,q1,q2,tau1,tau2\n# made by: x, y, z, u"),
        ("", "t,q1,q2,tau1,tau2,"),
        ("", "t,q1,q2,tau1,tau2,,,"),
    ],
)
@pytest.mark.parametrize("end", ["", ",", ",,"])
def test_comments_and_empty_columns_around_the_names(above: str, header: str, end: str) -> None:
    text = above + "\n".join([header, *(",".join(map(repr, row)) + end for row in ROWS)])
    arrays, names, unused = read_csv(Path("x"), text)
    assert names == () and unused == []
    np.testing.assert_array_equal(arrays["q"], np.array(ROWS)[:, 1:3])
    np.testing.assert_array_equal(arrays["tau"], np.array(ROWS)[:, 3:])


def test_a_column_without_a_name_is_not_used() -> None:
    rows = [[float(k), *row[:4]] for k, row in enumerate(ROWS)]
    arrays, _, unused = read_csv(Path("x"), table(",t,q1,q2,fx", rows).replace(",fx", ",volt"))
    assert unused == ["number 1 (no name)", "volt"]
    np.testing.assert_array_equal(arrays["q"], np.array(ROWS)[:, 1:3])


def test_a_table_becomes_a_bag(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(
        b"\xef\xbb\xbf" + table("t,q_a,q_b,tau_a,volt", [r[:4] + [1.0] for r in ROWS]).encode()
    )
    with pytest.raises(SampleError, match="'tau' of some, not of b"):
        read_log(path)
    path.write_bytes(b"\xef\xbb\xbf" + table("t,q_a,q_b,tau_a,tau_b").encode())
    done = convert_log(path, tmp_path / "bag")
    assert done.names == ("a", "b") and done.samples == 3
    assert done.rate == pytest.approx(100.0) and done.warnings == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t,q1,tau1\n", "has no rows; a log's first line names its columns"),
        ("0.0,1.0,2.0\n0.1,1.0,2.0\n", "begins with numbers: a log's first line"),
        ("q1,tau1\n1,2\n1,2\n", "has no column of times"),
        ("t,tau1\n1,2\n1,2\n", "has no joint positions"),
        ("My log\nt,q1,tau1\n0,1,2\n", "1 values for 2 columns, which line 1 names: a title"),
        ("# a log\n# t,tau1\n1,2\n1,2\n", "has no joint positions"),
        ("# a log\n0.0,1.0,2.0\n0.1,1.0,2.0\n", "begins with numbers: a log's first line"),
        ("# t,q1,tau1\n", "has no rows"),
        ("t,q1,tau1\n0,1,2\n0.1,x,2\n", "'x' in line 3, column q1, is no number"),
        ("t,q1,tau1\n0,1,2\n0.1,,2\n", "line 3 has no value in column q1: fill it in, or take"),
        ("t,q1,tau1\n0,1,2\n0.1,1\n", "line 3 has 2 values for 3 columns"),
        ("t;q1;tau1\n0,1;1;2\n0,2;1;2\n", "decimals are written with a point"),
        ("t,q1,q2,tau1\n0,1,2,3\n1,2,3,4\n", "'tau' of some, not of 2"),
        ("t,q1,fx,fy\n0,1,2,3\n1,2,3,4\n", "'wrench' of some, not of fz, tx"),
        ("t,q1\n0,1\n0.1,2\n", "neither 'tau' nor 'wrench'"),
        ("t,q1,tau1\n0,1,2\n0,1,2\n", "time, column t, doesn't increase at line 3: 0, then 0"),
        ("t,q1,tau1\n0,1,nan\n0.1,1,2\n", "1 value is not finite, .* line 2, column tau1"),
        ("t [ms],q1,tau1\n\n0,1,2\n\n5,1,2\n4,1,2\n", r"column t \[ms\], .* line 6: 5, then 4"),
        ("t,q2,q1,tau1,tau2\n0,1,2,3,4\n1,nan,nan,2,3\n", "2 values .* line 3, column q2"),
        ('t,q1,tau1\n0,"1,2\n' + "0.1,1,2\n" * 20000, "is a quotation mark left open"),
        ("t,q1,tau1\n0,1,2\n1,1,2\n2,1,2\n", "steps of 't' are 1 s: is it in seconds"),
    ],
)
def test_other_tables_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text(text)
    with pytest.raises(SampleError, match=message):
        read_log(path)


def test_degrees_of_the_caller_leave_a_slide_in_metres(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    header = "t,q_turn,q_lift [mm],dq_turn,dq_lift [m/s],tau_turn,tau_lift"
    path.write_text(f"{header}\n0,90,300,180,0.1,1,2\n0.1,0,0,0,0,1,2\n")
    log = read_log(path, degrees=True)
    assert log.names == ("turn", "lift") and log.dq is not None
    np.testing.assert_allclose(log.q[0], [np.pi / 2.0, 0.3])
    np.testing.assert_allclose(log.dq[0], [np.pi, 0.1])
