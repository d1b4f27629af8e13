"""The learner node over DDS, with a small arm whose dynamics are exact."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from geometry_msgs.msg import WrenchStamped
from lifecycle_msgs.srv import GetState
from rcl_interfaces.srv import DescribeParameters, GetParameters
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import SetBool, Trigger

from semiparam_dynamics.base.nodes.messages import stamp_of
from semiparam_dynamics.base.parameters import from_flat
from semiparam_dynamics.learner.config import InverseDynamicsNodeConfig
from semiparam_dynamics.learner.nodes import inverse_dynamics
from semiparam_dynamics.learner.nodes.session import Session

from .conftest import take
from .test_transitions import drive  # noqa: F401

NODE = "/inverse_dynamics"
ERROR, WARN, OK = b"\x02", b"\x01", b"\x00"


def log_of(folder: Path) -> str:
    return (folder / "inverse_dynamics.log").read_text()


def seen(peer) -> int:
    return int(peer.figures().get("samples seen", -1))


def test_publishes_what_the_core_gives_for_the_same_messages(peer, start, urdf, connect, make_arm):
    process = start("inverse_dynamics", urdf=urdf, defer_learning="false")
    topics = ("predicted", "rigid_body", "external", "measured")
    heard = {topic: peer.listen(JointState, f"{NODE}/{topic}") for topic in topics}
    parameters = peer.listen(Float64MultiArray, f"{NODE}/inertial_parameters")
    arm = connect()
    arm.move(200)
    # One sample lags behind, for the central difference, and the filter starts on another.
    peer.until(lambda: all(len(h) >= 198 for h in heard.values()), "198 predictions")
    assert [stamp_of(m) for m in heard["predicted"]] == arm.stamps[1:-1]
    assert list(heard["predicted"][0].name) == ["shoulder", "elbow"]

    flat = {"urdf": str(urdf), "defer_learning": False}
    session = Session(str(urdf), from_flat(InverseDynamicsNodeConfig, flat))
    again = make_arm(peer)
    for k in range(198):
        steps = []
        while not steps:
            steps = take(session, again.message())
        (step,) = steps
        predicted, external = heard["predicted"][k].effort, heard["external"][k].effort
        np.testing.assert_allclose(predicted, step.prediction.semiparametric, rtol=1e-9)
        np.testing.assert_allclose(
            heard["rigid_body"][k].effort, step.prediction.rigid_body, rtol=1e-9
        )
        np.testing.assert_allclose(np.add(predicted, external), step.y, rtol=1e-9)
        np.testing.assert_allclose(heard["measured"][k].effort, step.y, rtol=1e-9)

    peer.until(lambda: seen(peer) == 200, "diagnostics of all samples")
    assert peer.figures()["samples learned"] == "198"
    assert float(peer.figures()["nmse rigid_body elbow"]) < 0.5
    # Soon it warns of the silence.
    peer.until(lambda: arm.move(1) or peer.status.level == OK, "no warning while messages come")
    peer.until(lambda: len(parameters) > 0, "the parameters")
    labels = [dimension.label for dimension in parameters[-1].layout.dim]
    assert labels == list(session.model.labels)
    assert len(parameters[-1].data) == 2 * len(labels)
    assert process.stop() == 0
    assert "Traceback" not in log_of(Path(urdf).parent)


def test_publishes_the_wrench_at_a_frame_and_takes_what_it_is_at_rest_as_zero(
    peer, start, urdf, connect, make_arm
):
    given = {"urdf": str(urdf), "defer_learning": False, "external_axes": "base"}
    start("inverse_dynamics", **{k: str(v).lower() if k != "urdf" else v for k, v in given.items()})
    heard = peer.listen(WrenchStamped, f"{NODE}/external_wrench")
    covariances = peer.listen(Float64MultiArray, f"{NODE}/external_wrench_covariance")
    arm = connect()
    arm.move(60)
    peer.until(lambda: len(heard) >= 58 and len(covariances) >= 58, "58 wrenches")
    refused = peer.call(Trigger, f"{NODE}/tare")
    assert not refused.success and "stand still" in refused.message

    session = Session(str(urdf), from_flat(InverseDynamicsNodeConfig, given))
    again = make_arm(peer)
    steps = [step for _ in range(60) for step in take(session, again.message())]
    for step, message, covariance in zip(steps, heard, covariances, strict=True):
        p = step.prediction
        external = step.y - p.semiparametric
        expected = session.external.estimate(
            step.sample.q, external, p.semiparametric_std, step.stamp
        )
        np.testing.assert_allclose(wrench_of(message), expected.value, rtol=1e-9, atol=1e-12)
        assert np.isfinite(expected.value).all()
        assert message.header.frame_id == "base"
        sent = np.array(covariance.data).reshape(6, 6)
        np.testing.assert_allclose(sent, expected.covariance, rtol=1e-9)

    still = again.message()
    still.velocity = [0.0, 0.0]

    def stand() -> None:
        stamp = stamp_of(still) + 10_000_000
        still.header.stamp.sec, still.header.stamp.nanosec = divmod(stamp, 1_000_000_000)
        arm.publisher.publish(still)

    for _ in range(150):
        stand()
        peer.spin(0.002)
    peer.until(lambda: len(heard) >= 200, "wrenches at rest")
    before = np.linalg.norm(wrench_of(heard[-1]))
    goes_on = peer.node.create_timer(0.01, stand)  # a tare is of the last seconds
    tared = peer.call(Trigger, f"{NODE}/tare")
    peer.node.destroy_timer(goes_on)
    assert tared.success and "shoulder" in tared.message, tared.message
    for _ in range(10):
        stand()
        peer.spin(0.002)
    last = stamp_of(still) - 10_000_000  # of the sample that the last message completes
    peer.until(lambda: stamp_of(heard[-1]) == last, "wrenches after that")
    peer.until(lambda: "external wrench: tared" in peer.figures(), "diagnostics")
    assert np.linalg.norm(wrench_of(heard[-1])) < 0.1 * before
    assert peer.figures()["external wrench: axes of"] == "base"
    assert "N force" in peer.figures()["external wrench: not seen"]


def wrench_of(message: WrenchStamped) -> np.ndarray:
    force, torque = message.wrench.force, message.wrench.torque
    return np.array([force.x, force.y, force.z, torque.x, torque.y, torque.z])


def test_services_save_load_reset_and_switch_learning(peer, start, urdf, connect, tmp_path):
    model_file = tmp_path / "models" / "arm.npz"
    start("inverse_dynamics", urdf=urdf, model_file=model_file)
    refused = peer.call(Trigger, f"{NODE}/load")
    assert not refused.success
    assert str(model_file) in refused.message
    arm = connect()
    arm.move(60)
    peer.until(lambda: peer.figures().get("samples learned") == "58", "58 samples learned")

    assert peer.call(SetBool, f"{NODE}/learn", SetBool.Request(data=False)).success
    arm.move(30)
    peer.until(lambda: seen(peer) == 90, "90 samples")
    assert peer.figures()["samples learned"] == "58"
    assert peer.figures()["dropped: learning switched off"] == "30"
    saved = peer.call(Trigger, f"{NODE}/save")
    assert saved.success and "58" in saved.message and model_file.exists()

    assert peer.call(Trigger, f"{NODE}/reset").success
    peer.until(lambda: peer.figures()["samples learned"] == "0", "the reset")
    assert peer.call(Trigger, f"{NODE}/load").success
    peer.until(lambda: peer.figures()["samples learned"] == "58", "the loaded model")

    model_file.write_bytes(b"not a model")
    refused = peer.call(Trigger, f"{NODE}/load")
    assert not refused.success and "damaged" in refused.message


def test_urdf_from_the_topic_and_a_topic_that_never_comes(peer, start, urdf):
    start("inverse_dynamics", joints="[shoulder,elbow]")
    peer.until(lambda: peer.status is not None, "diagnostics")
    assert peer.status.level == WARN and "robot_description" in peer.status.message
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    description = peer.node.create_publisher(String, "robot_description", latched)

    description.publish(String(data=urdf.read_text().replace("elbow", "wrist")))
    peer.until(lambda: peer.status.level == ERROR, "the refusal")
    assert "elbow" in peer.status.message
    assert peer.call(GetState, f"{NODE}/get_state").current_state.label == "unconfigured"
    assert not (answer := peer.call(Trigger, f"{NODE}/save")).success
    assert "elbow" in answer.message

    peer.node.create_publisher(JointState, "/robot/joint_states", 10)
    description.publish(String(data=urdf.read_text()))
    peer.until(lambda: peer.figures().get("state") == "active", "the active state")
    peer.until(lambda: "/robot/joint_states" in peer.status.message, "the other topic's name")
    assert peer.status.level == WARN


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"joints": "[shoulder, wrist]"}, "no joint 'wrist'"),
        ({"target": "wrench"}, "sensor_frame"),
        ({"target": "wrench", "sensor_frame": "hand"}, "'hand'"),
        ({"gravity": "[0.0]"}, "'gravity' needs 3 numbers"),
    ],
)
def test_what_cannot_serve_is_refused_before_the_core_is_compiled(
    drive,  # noqa: F811
    urdf: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: dict[str, str],
    reason: str,
) -> None:
    compiled: list[object] = []
    monkeypatch.setattr(inverse_dynamics, "is_compiled", lambda: False)
    monkeypatch.setattr(inverse_dynamics, "compile_together", compiled.append)
    driven = drive(urdf=urdf, **given)
    assert not driven.node.start()
    assert reason in driven.node.problem
    assert not compiled


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
    assert log_of(urdf.parent).count("effort sign: the effort of elbow") == 1


def test_live_parameters_are_refused_or_kept(peer, start, urdf, connect):
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
