"""The learner node's parameters set while it runs: what it says doesn't jump."""

from __future__ import annotations

import numpy as np
from rcl_interfaces.srv import DescribeParameters, GetParameters
from sensor_msgs.msg import JointState

NODE = "/inverse_dynamics"


def test_what_is_refused_and_what_is_kept(peer, start, urdf, connect):
    start("inverse_dynamics", urdf=urdf)
    predicted = peer.listen(JointState, f"{NODE}/predicted")
    arm = connect()
    arm.move(60)
    peer.until(lambda: peer.figures().get("samples learned") == "58", "58 samples learned")
    refused = peer.set_live(NODE, nystrom__penalty=-1.0)
    assert not refused.successful and "nystrom.penalty" in refused.reason
    assert "when the node starts" in peer.set_live(NODE, nystrom__length_scale=0.3).reason
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
