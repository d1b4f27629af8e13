import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from semiparam_dynamics.samples.stream import JointMatcher

NAMES = st.lists(st.text(max_size=3), min_size=1, max_size=8, unique=True)


@given(NAMES, st.lists(st.text(max_size=3), max_size=4), st.randoms(use_true_random=False))
def test_the_index_selects_the_wanted_joints_by_name(wanted, others, random) -> None:
    names = wanted + [name for name in others if name not in wanted]
    random.shuffle(names)
    index = JointMatcher(wanted).match(names)
    assert index is not None
    assert [names[i] for i in index] == wanted


def test_the_order_is_followed_when_it_changes_between_messages() -> None:
    matcher = JointMatcher(["a", "b"])
    assert np.array_equal(matcher.match(["a", "b"]), [0, 1])
    assert np.array_equal(matcher.match(["x", "b", "a"]), [2, 1])
    assert np.array_equal(matcher.match(["a", "b"]), [0, 1])


def test_a_list_changed_in_place_is_noticed() -> None:
    matcher, names = JointMatcher(["a", "b"]), ["a", "b"]
    matcher.match(names)
    names.reverse()
    assert np.array_equal(matcher.match(names), [1, 0])


def test_what_is_missing_or_doubled_is_named() -> None:
    matcher = JointMatcher(["a", "b"])
    assert matcher.match(["a", "c"]) is None
    assert (matcher.problem, matcher.detail) == (
        "missing joint",
        "no b among the message's joints: a, c",
    )
    assert matcher.match(["a", "b", "a"]) is None
    assert matcher.problem == "duplicate joint name"
    assert matcher.match(["a", "b", "c", "c"]) is not None
    assert matcher.problem == ""


def test_more_names_than_a_robot_has_are_refused_and_forgotten() -> None:
    matcher = JointMatcher(["a", "b"])
    many = ["a", "b", *map(str, range(10_000))]
    assert matcher.match(many) is None
    assert matcher.problem == "too many joints" and "10002" in matcher.detail
    assert matcher.match(["a", "c"]) is None
    assert matcher.problem == "missing joint"
    assert matcher.match(many[:10_000]) is not None and matcher.problem == ""
