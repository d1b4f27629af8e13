"""The recogniser node's round trip: camera images in, labels and scores out, over DDS.

One process publishes 640x480 rgb8 images, as a camera does, and hears the node's answers; both read
the same clock. The node starts from a model that knows 1000 objects, and is taught new ones in
every other stretch of time. Answers bear no stamp: pictures come in a fixed turn, and the scores of
their own classes identify the picture of an answer; so scores are not smoothed over frames. All
other settings are the node's defaults, but for what --set names.

    python benchmarks/recognition_latency.py --seconds 60
    python benchmarks/recognition_latency.py --seconds 60 --set "ridge=[0.3]" backbone.threads=2

Such an image is larger than the 512 kB of shared memory that Fast DDS has for what a process sends.
It then goes through UDP in pieces, and without acknowledgements most of them are lost. Here there
are 16 MB instead; `--transport default` leaves Fast DDS as it is.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from array import array
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import rclpy
import yaml
from diagnostic_msgs.msg import DiagnosticArray
from node_peer import cpu_seconds
from output import make_parser, parse
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile, qos_profile_sensor_data
from sensor_msgs.msg import Image
from std_msgs.msg import Float32MultiArray, String
from threadpoolctl import threadpool_limits

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.nodes.processes import NodeProcess, use_own_network
from semiparam_dynamics.base.parameters import from_flat
from semiparam_dynamics.recognition.config import ObjectRecognitionNodeConfig
from semiparam_dynamics.recognition.nodes.recognition_session import RecognitionSession

HEIGHT, WIDTH = 480, 640
PICTURES = 64  # shown in turn: answers are told apart while fewer frames are lost in a row
EXAMPLES = 12  # that the model has of each object
QUEUE = 100
LARGE = Path(__file__).resolve().parent.parent / "config" / "fastdds" / "large_images.xml"


@dataclass
class Run:
    """The measurements: times on the clock in s, sent and heard."""

    sent: list[float] = field(default_factory=list)
    taught: list[bool] = field(default_factory=list)
    labels: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    pictures: list[int] = field(default_factory=list)
    node: float = 0.0  # processor use, 1: one core
    publisher: float = 0.0
    figures: dict[str, str] = field(default_factory=dict)


def main() -> None:
    args = read_arguments()
    use_own_network()
    shown = pictures()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if args.transport == "large":
            os.environ["FASTDDS_DEFAULT_PROFILES_FILE"] = str(LARGE)
        settings = dict(one.split("=", 1) for one in args.set)
        parsed = {name: yaml.safe_load(value) for name, value in settings.items()}
        save_model(folder / "model.npz", shown, args.classes, parsed)
        parameters = {
            "model_file": folder / "model.npz",
            "max_classes": args.classes + 1000,
            "smoothing.frames": 1,
            **settings,
        }
        with threadpool_limits(1):
            with NodeProcess("object_recognition", parameters, folder / "log") as node:
                report(args, exchange(node, args, [image(one) for one in shown]))


def read_arguments() -> argparse.Namespace:
    parser = make_parser(__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=30.0, help="images a second [Hz]")
    parser.add_argument("--classes", type=int, default=1000, help="objects known beforehand")
    parser.add_argument(
        "--stretch", type=float, default=5.0, help="seconds of teaching an object, and of none"
    )
    parser.add_argument("--transport", choices=("large", "default"), default="large")
    parser.add_argument(
        "--set", nargs="+", default=[], metavar="NAME=VALUE", help="parameters of the node"
    )
    return parse(parser)


def pictures() -> list[np.ndarray]:
    """Patches of colour with a camera's noise, (height, width, 3) uint8."""
    rng = np.random.default_rng(0)
    patches = rng.integers(30, 226, (PICTURES, 6, 8, 3))
    large = (np.kron(one, np.ones((HEIGHT // 6, WIDTH // 8, 1))) for one in patches)
    return [(one + rng.normal(0.0, 8.0, one.shape)).clip(0, 255).astype(np.uint8) for one in large]


def image(pixels: np.ndarray) -> Image:
    """The message of a picture."""
    data = array("B", pixels.tobytes())
    return Image(height=HEIGHT, width=WIDTH, encoding="rgb8", step=3 * WIDTH, data=data)


def save_model(
    path: Path, shown: list[np.ndarray], classes: int, settings: dict[str, object]
) -> None:
    """Save a node's model of so many objects: the pictures, and others of random features."""
    config = from_flat(ObjectRecognitionNodeConfig, settings)
    session = RecognitionSession(config, lambda recognition: None)
    if session.backbone is None:
        raise RuntimeError("The node's default input is no longer images.")
    rng = np.random.default_rng(0)
    own = np.array([session.backbone.features(one) for one in shown], dtype=float)
    others = np.abs(rng.standard_normal((max(classes - len(own), 0), own.shape[1])))
    others = np.repeat(others, EXAMPLES, axis=0)
    others += np.abs(rng.normal(0.0, 0.7, others.shape))
    others /= np.linalg.norm(others, axis=1, keepdims=True)
    labels = [picture_label(i) for i in range(len(own))]
    labels += [f"object {i}" for i in range(len(own), classes)]
    rows = np.concatenate((np.repeat(own, EXAMPLES, axis=0), others))
    session.recognizer.model.partial_fit(rows, np.repeat(labels, EXAMPLES).tolist())
    session.autosave.save(path)


def picture_label(number: int) -> str:
    return f"picture {number}"


def exchange(node: NodeProcess, args: argparse.Namespace, messages: list[Image]) -> Run:
    """Publish images at the rate, and name a new object in every other stretch."""
    rclpy.init()
    peer, run = rclpy.create_node("recognition_latency"), Run()
    images = peer.create_publisher(Image, "image", qos_profile_sensor_data)
    names = peer.create_publisher(String, "label", 10)
    listen(peer, run)
    executor = SingleThreadedExecutor()
    executor.add_node(peer)
    while not images.get_subscription_count() or not names.get_subscription_count():
        node.check()
        executor.spin_once(timeout_sec=0.1)
    wait(executor, 2.0)  # the other direction's discovery
    used, own = cpu_seconds(node.pid), time.process_time()
    start, said = time.monotonic(), ""
    for k in range(round(args.rate * args.seconds)):
        while (delay := start + k / args.rate - time.monotonic()) > 0:
            executor.spin_once(timeout_sec=delay)
        stretch = int(k / args.rate / args.stretch)
        label = f"new object {stretch}" if stretch % 2 else ""
        if label != said:
            names.publish(String(data=label))
            said = label
        run.sent.append(time.monotonic())
        run.taught.append(bool(label))
        images.publish(messages[k % len(messages)])
    elapsed = time.monotonic() - start
    run.node = (cpu_seconds(node.pid) - used) / elapsed
    run.publisher = (time.process_time() - own) / elapsed
    run.figures.clear()  # those of before the last frames would tell them as lost
    wait(executor, 2.5)
    while not run.figures:  # on a machine that is busy
        node.check()
        wait(executor, 0.5)
    peer.destroy_node()
    rclpy.try_shutdown()
    return run


def wait(executor: rclpy.executors.Executor, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        executor.spin_once(timeout_sec=0.1)


def listen(peer: Node, run: Run) -> None:
    """Note when the node's answers come and which picture's class has the best score."""
    numbers: list[int] = []

    def labelled(message: String) -> None:
        run.labels.append(time.monotonic())

    def scored(message: Float32MultiArray) -> None:
        now = time.monotonic()
        if not numbers:  # labels are sorted: the pictures' come last, also when there are more
            place = {one.label: i for i, one in enumerate(message.layout.dim)}
            numbers.extend(place[picture_label(i)] - len(place) for i in range(PICTURES))
        run.scores.append(now)
        run.pictures.append(int(np.argmax([message.data[i] for i in numbers])))

    def diagnosed(message: DiagnosticArray) -> None:
        run.figures.update({pair.key: pair.value for pair in message.status[0].values})

    queue = QoSProfile(depth=QUEUE)
    peer.create_subscription(String, "object_recognition/label", labelled, queue)
    peer.create_subscription(Float32MultiArray, "object_recognition/scores", scored, queue)
    peer.create_subscription(DiagnosticArray, "/diagnostics", diagnosed, 10)


def answered(run: Run) -> Array:
    """For each frame the seconds to its label and to its scores, (n, 2); NaN: not answered.

    An answer is about the last frame with its picture that was sent before it.
    """
    found, sent, last = np.full((len(run.sent), 2), np.nan), np.array(run.sent), -1
    for label, scores, picture in zip(run.labels, run.scores, run.pictures, strict=True):
        newest = int(np.searchsorted(sent, label)) - 1
        frame = newest - (newest - picture) % PICTURES
        if frame <= last:
            raise RuntimeError("An answer fits no frame: the pictures were not told apart.")
        found[frame] = label - sent[frame], scores - sent[frame]
        last = frame
    return found


def report(args: argparse.Namespace, run: Run) -> None:
    trips, taught = 1e3 * answered(run), np.array(run.taught)
    n, seen = len(run.sent), int(run.figures["frames seen"])
    print(f"| {n} images of {WIDTH}x{HEIGHT} at {args.rate:g} Hz | p50 | p99 | max |")
    print("|---|---|---|---|")
    for column, topic in enumerate(("label", "scores")):
        for when, rows in (("all", taught | True), ("asking", ~taught), ("teaching", taught)):
            times = trips[rows, column]
            times = times[np.isfinite(times)]
            cells = "| | |"
            if len(times):
                figures = (*np.percentile(times, (50, 99)), times.max())
                cells = " | ".join(f"{x:.1f}" for x in figures) + " |"
            print(f"| image to {topic} [ms], {when} | {cells}")
    rows = {
        "not answered": int(np.isnan(trips[:, 0]).sum()),
        "lost on the way to the node": n - seen,
        "dropped by the node": run.figures["frames dropped"],
        "node's processor use [cores]": f"{run.node:.2f}",
        "publisher's processor use [cores]": f"{run.publisher:.2f}",
    }
    wanted = ("frames taught", "objects", "features", "recognize", "learn ", "frame ", "refused")
    rows |= {name: value for name, value in run.figures.items() if name.startswith(wanted)}
    for name, value in rows.items():
        print(f"| {name} | {value} | | |")


if __name__ == "__main__":
    main()
