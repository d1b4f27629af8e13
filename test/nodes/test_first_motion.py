"""A robot's first motion compared with its URDF while the node learns."""

from __future__ import annotations

from pathlib import Path


def test_a_turned_effort_is_told_once_with_what_to_write(peer, start, urdf, connect):
    start("inverse_dynamics", urdf=urdf)
    arm = connect()
    right = arm.message

    def turned():
        arm.sent += 3  # 40 ms apart
        message = right()
        message.effort[1] *= -1.0
        return message

    arm.message = turned
    arm.move(775)
    told = "first motion: effort sign"
    peer.until(lambda: told in peer.figures(), "the comparison")
    assert "elbow" in peer.figures()[told]
    assert "samples.effort_scale: [1.0, -1.0]" in peer.figures()[told]
    predicted = int(peer.figures()["samples predicted"])
    arm.move(50)
    peer.until(lambda: int(peer.figures()["samples predicted"]) > predicted, "more predictions")
    log = (Path(urdf).parent / "inverse_dynamics.log").read_text()
    assert log.count("effort sign: the effort of elbow") == 1


def test_it_can_be_switched_off(make_session):
    assert make_session(examine_start=False).first_motion is None
