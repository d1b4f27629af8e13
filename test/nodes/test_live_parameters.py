"""The learner node's parameters set while it runs: what it says doesn't jump."""

from __future__ import annotations

from typing import Any

import numpy as np
from rcl_interfaces.srv import DescribeParameters, GetParameters
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger

NODE = "/inverse_dynamics"


def with_springs(arm: type[Any]) -> type[Any]:
    """The arm with a torque that no rigid body has."""

    class Springy(arm):
        def message(self) -> JointState:
            message = super().message()
            q = np.array(message.position)
            message.effort = (np.array(message.effort) + 2.0 * np.sin(4.0 * q)).tolist()
            return message

    return Springy


def test_penalties_change_without_a_jump(peer, start, urdf, make_arm, tmp_path):
    model_file = tmp_path / "arm.npz"
    always = {"nystrom__window": 0.5}
    # Beside the messages, what is learned depends on how old the predictions are by then.
    always |= {"defer_learning": False}
    start("inverse_dynamics", urdf=urdf, model_file=model_file, **always)
    predicted = peer.listen(JointState, f"{NODE}/predicted")
    rigid_body = peer.listen(JointState, f"{NODE}/rigid_body")
    arm = with_springs(make_arm)(peer)
    arm.connect()
    arm.move(200)
    peer.until(lambda: peer.figures().get("samples learned") == "198", "198 samples learned")
    assert peer.call(SetBool, f"{NODE}/learn", SetBool.Request(data=False)).success

    peer.until(lambda: len(predicted) >= 198, "all predictions")
    before, after = [], []
    for heard, values in ((before, {}), (after, {"nystrom.penalty": 0.4})):
        if values:
            result = peer.set_live(NODE, **values)
            assert result.successful, result.reason
        known, later = len(predicted), 100 + 100 * bool(values)
        # The same motion in each pass, after a gap of its own that restarts the filters.
        for k in range(25):
            arm.sent = 100 + k
            again = arm.message()
            again.header.stamp.sec += later
            arm.publisher.publish(again)
            peer.spin(0.005)
        peer.until(lambda n=known: len(predicted) >= n + 23, "23 predictions")
        peer.until(lambda: len(rigid_body) == len(predicted), "as many of the rigid body")
        heard += [
            (m.header.stamp.nanosec, *m.effort, *r.effort)
            for m, r in zip(predicted[known:], rigid_body[known:], strict=True)
        ]
    assert len(before) == len(after) == 23
    values = np.array(before)
    assert np.abs(values[:, 1:3] - values[:, 3:]).max() > 0.003  # the residual has its say
    np.testing.assert_allclose(np.array(after)[:, 3:], values[:, 3:], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(after, before, rtol=0.0, atol=0.002)

    assert peer.call(SetBool, f"{NODE}/learn", SetBool.Request(data=True)).success
    assert peer.call(Trigger, f"{NODE}/save").success
    assert peer.set_live(NODE, nystrom__penalty=5.0).successful
    assert "198" in peer.call(Trigger, f"{NODE}/load").message


def test_what_is_refused_and_what_is_kept(peer, start, urdf, connect):
    start("inverse_dynamics", urdf=urdf)
    predicted = peer.listen(JointState, f"{NODE}/predicted")
    arm = connect()
    arm.move(60)
    peer.until(lambda: peer.figures().get("samples learned") == "58", "58 samples learned")
    refused = peer.set_live(NODE, nystrom__penalty=-1.0)
    assert not refused.successful and "nystrom.penalty" in refused.reason
    assert not peer.set_live(NODE, nystrom__length_scale=0.3).successful
    accepted = {"comparison": True, "save_interval": 30, "learning_queue": 7}
    assert peer.set_live(NODE, **accepted, defer_learning=False).successful
    names = ["save_interval", "rigid_body.memory", "nystrom.penalty", "learning_queue"]
    request = GetParameters.Request(names=names)
    values = peer.call(GetParameters, f"{NODE}/get_parameters", request).values
    assert [value.double_value for value in values[:3]] == [30.0, 0.0, 0.5]
    assert values[3].integer_value == 7
    arm.move(20)
    peer.until(lambda: peer.figures().get("samples learned") == "78", "78 samples learned")
    peer.until(lambda: "nmse nonparametric elbow" in peer.figures(), "the comparison")
    request = DescribeParameters.Request(names=[*names, "nystrom.length_scale"])
    described = peer.call(DescribeParameters, f"{NODE}/describe_parameters", request).descriptors
    assert [one.read_only for one in described] == [False] * 4 + [True]
    assert described[0].floating_point_range[0].to_value == 1e6
    for pair in (
        {"changes.contact": 5e-324, "output.bound_efforts": 5e-324},
        {"rigid_body.memory": 5e-324, "nystrom.memory": 1e7},
        {"output.gate": 1e-20, "learning_share": 0.01},
    ):
        result = peer.set_live(NODE, **pair)
        assert result.successful, result.reason
        known = len(predicted)
        arm.move(20)
        peer.until(lambda n=known: len(predicted) >= n + 20, f"20 predictions with {pair}")
    assert np.isfinite([message.effort for message in predicted]).all()
