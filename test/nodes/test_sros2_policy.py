"""The SROS 2 policy allows what the nodes really do on the network, and nothing else."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from geometry_msgs.msg import WrenchStamped

from .forks import ForkedNode

POLICY = Path(__file__).resolve().parents[2] / "config" / "sros2" / "policy.xml"
NODES = (
    "inverse_dynamics",
    "object_recognition",
    "arm_simulator",
    "computed_torque",
    "trajectory_efforts",
    "payload_bridge",
    "live_page",
    "image_source",
    "objects_page",
)
# The attributes that sros2's schema (policy.xsd, version 0.2.0) allows of each kind of list.
RULES = {"topics": {"publish", "subscribe"}, "services": {"reply", "request"}}
Permissions = dict[str, set[str]]


def profile(node: str) -> ElementTree.Element:
    found = ElementTree.parse(POLICY).findall(f"enclaves/enclave/profiles/profile[@node='{node}']")
    assert len(found) == 1, f"one profile of {node}"
    return found[0]


def allowed(node: str) -> Permissions:
    permissions: Permissions = {rule: set() for rule in set().union(*RULES.values())}
    for names in profile(node):
        for rule in names.attrib:
            permissions[rule] |= {str(one.text) for one in names}
    return permissions


def expanded(permissions: Permissions, namespace: str, node: str) -> Permissions:
    """With names as they are on the network, expanded as sros2's permissions.xsl does."""

    def full(name: str) -> str:
        if name.startswith("/"):
            return name
        return f"{namespace}/{node}{name[1:]}" if name.startswith("~") else f"{namespace}/{name}"

    return {rule: set(map(full, names)) for rule, names in permissions.items()}


def graph(peer: Any, namespace: str, node: str) -> Permissions:
    """What the node has on the network now."""
    kinds = {
        "publish": peer.node.get_publisher_names_and_types_by_node,
        "subscribe": peer.node.get_subscriber_names_and_types_by_node,
        "reply": peer.node.get_service_names_and_types_by_node,
        "request": peer.node.get_client_names_and_types_by_node,
    }
    if (node, namespace) not in peer.node.get_node_names_and_namespaces():
        return {rule: set() for rule in kinds}
    return {rule: {name for name, _ in look(node, namespace)} for rule, look in kinds.items()}


def test_the_file_is_what_sros2_reads() -> None:
    policy = ElementTree.parse(POLICY).getroot()
    assert (policy.tag, policy.attrib) == ("policy", {"version": "0.2.0"})
    (enclaves,) = policy
    assert enclaves.tag == "enclaves"
    assert [one.get("path") for one in enclaves] == [f"/semiparam_dynamics/{n}" for n in NODES]
    for enclave, node in zip(enclaves, NODES, strict=True):
        assert (enclave.tag, set(enclave.attrib)) == ("enclave", {"path"})
        assert [one.tag for one in enclave] == ["profiles"]
        assert [one.attrib for one in enclave[0]] == [{"ns": "/", "node": node}]
        for names in enclave[0][0]:
            assert names.attrib and set(names.attrib) <= RULES[names.tag]
            assert set(names.attrib.values()) == {"ALLOW"}
            assert len(names) and {one.tag for one in names} == {names.tag[:-1]}
            texts = [str(one.text) for one in names]
            assert len(set(texts)) == len(texts) and not any("*" in text for text in texts)


def test_no_node_calls_services_or_writes_what_it_should_only_read() -> None:
    for node in NODES:
        permissions = allowed(node)
        # Which are for that: the robot's driver, and saving by a button.
        assert not permissions["request"] or node in ("payload_bridge", "objects_page")
        assert not permissions["publish"] & permissions["subscribe"]


# In each variant, what the node does not have of all that it may have.
OUTPUTS = {"predicted", "rigid_body", "external", "measured", "inertial_parameters"}
OUTPUTS |= {"external_wrench", "external_wrench_covariance", "external_fast", "markers"}
OUTPUTS |= {"contact", "collision", "contact_events"}
OUTPUTS = {f"~/{name}" for name in OUTPUTS}


FEEDFORWARD = {"feedforward", "feedforward_rigid_body"}
FEEDFORWARD |= {f"{name}_std" for name in FEEDFORWARD}
ANSWERS = {"~/desired", *(f"~/{name}" for name in FEEDFORWARD)}
CHANGES = {"payload", "payload_std", "contact_external", "external_deviation", "changes"}
CHANGES = {f"~/{name}" for name in (*CHANGES, "snapshot", "recall", "release", "forget_snapshot")}


def test_inverse_dynamics(peer, tmp_path, urdf) -> None:
    pytest.importorskip("trajectory_msgs.msg", reason="the feed-forward needs trajectory_msgs")
    wrench = {"urdf": urdf, "target": "wrench", "sensor_frame": "elbow", "use_sim_time": "true"}
    waits = {"/clock", "joint_states", "wrench", *OUTPUTS, *ANSWERS, *CHANGES}
    effort = {"urdf": urdf, "feedforward": "true", "changes.detect": "true"}
    variants = (
        ({}, waits),
        (wrench, {"robot_description", *ANSWERS, *CHANGES}),
        (effort, {"/clock", "robot_description", "wrench"}),
    )
    check(peer, tmp_path, "inverse_dynamics", variants)


def test_object_recognition(peer, tmp_path) -> None:
    pytest.importorskip("onnxruntime", reason="needs the extra 'vision'")
    features = {"input": "features", "use_sim_time": "true"}
    variants = (({"input": "image"}, {"/clock", "features"}), (features, {"image"}))
    check(peer, tmp_path, "object_recognition", variants)


def test_arm_simulator(peer, tmp_path, simulator) -> None:
    quick = {"motion": "exciting"}  # no inverse kinematics
    commanded = {**quick, "use_sim_time": "true", "control": "effort"}
    variants = ((quick, {"/clock", "effort_command"}), (commanded, set()))
    check(peer, tmp_path, "arm_simulator", variants)


def test_computed_torque(peer, tmp_path, urdf) -> None:
    pytest.importorskip("trajectory_msgs.msg", reason="the controller needs trajectory_msgs")
    answers = {name: f"inverse_dynamics/{name}" for name in FEEDFORWARD}
    rigid_body = {answers[name] for name in FEEDFORWARD if "rigid_body" in name}
    waits = {"/clock", *answers.values()}
    given = {"urdf": urdf, "motion": "exciting", "use_sim_time": "true"}
    other = {**given, "feedforward": "rigid_body"}
    semiparametric = set(answers.values()) - rigid_body
    variants = (
        ({}, waits),
        (given, {"robot_description", *rigid_body}),
        (other, {"robot_description", *semiparametric}),
    )
    check(peer, tmp_path, "computed_torque", variants)


def test_trajectory_efforts(peer, tmp_path, urdf) -> None:
    pytest.importorskip("trajectory_msgs.msg", reason="trajectories need trajectory_msgs")
    rigid_body = {f"inverse_dynamics/{name}" for name in FEEDFORWARD if "rigid_body" in name}
    semiparametric = {f"inverse_dynamics/{name}" for name in FEEDFORWARD} - rigid_body
    other = {"urdf": urdf, "feedforward": "rigid_body", "use_sim_time": "true"}
    variants = (({}, {"/clock", *rigid_body}), (other, {"robot_description", *semiparametric}))
    check(peer, tmp_path, "trajectory_efforts", variants)


def test_payload_bridge(peer, tmp_path, urdf, driver_messages) -> None:
    ur, franka = "io_and_status_controller/set_payload", "service_server/set_load"
    release = "inverse_dynamics/release"
    given = {"urdf": urdf, "frame": "lower", "use_sim_time": "true"}
    variants = (
        ({"driver": "ur"}, {"/clock", franka, release}),
        ({"driver": "franka", "compensated": "true", **given}, {"robot_description", ur}),
    )
    check(peer, tmp_path, "payload_bridge", variants)


def test_live_page(peer, tmp_path, urdf) -> None:
    pytest.importorskip("visualization_msgs.msg")
    outputs = {f"inverse_dynamics/{name}" for name in ("predicted", "rigid_body", "measured")}
    # It subscribes the learner's outputs where there is a learner, by its topics' type.
    learner = peer.node.create_publisher(WrenchStamped, "variant1/inverse_dynamics/predicted", 1)
    variants = (
        ({"port": 0}, {"/clock", *outputs}),
        ({"port": 0, "urdf": urdf, "use_sim_time": "true"}, {"robot_description"}),
    )
    check(peer, tmp_path, "live_page", variants)
    peer.node.destroy_publisher(learner)


def test_image_source(peer, tmp_path) -> None:
    pillow = pytest.importorskip("PIL.Image", reason="needs the extra 'vision'")
    pillow.new("RGB", (40, 30)).save(tmp_path / "a.png")
    camera = {"source": tmp_path, "wait_for_subscribers": 1}
    teacher = {"source": "digits", "teach": 1, "use_sim_time": "true", "wait_for_subscribers": 1}
    variants = ((camera, {"/clock", "label"}), (teacher, set()))
    check(peer, tmp_path, "image_source", variants)


def test_objects_page(peer, tmp_path) -> None:
    pytest.importorskip("PIL", reason="needs the extra 'vision'")
    variants = (({"port": 0}, {"/clock"}), ({"port": 0, "use_sim_time": "true"}, set()))
    check(peer, tmp_path, "objects_page", variants)


def check(peer: Any, folder: Path, node: str, variants: Any) -> None:
    policy = allowed(node)
    used: Permissions = {rule: set() for rule in policy}
    wanted: dict[str, Permissions] = {}
    with ExitStack() as running:
        for k, (parameters, absent) in enumerate(variants):
            log = folder / f"{k}.log"
            running.enter_context(ForkedNode(node, parameters, log, namespace=f"variant{k}"))
            present = {rule: names - absent for rule, names in policy.items()}
            wanted[f"/variant{k}"] = expanded(present, f"/variant{k}", node)
            for rule, names in present.items():
                used[rule] |= names

        def complete() -> bool:
            there = {namespace: graph(peer, namespace, node) for namespace in wanted}
            return all(one[rule] <= there[ns][rule] for ns, one in wanted.items() for rule in one)

        peer.until(complete, f"{node} with all of {wanted}")
        peer.spin(0.5)  # time for what it should not have
        for namespace, names in wanted.items():
            assert graph(peer, namespace, node) == names
    assert used == policy
