"""Sources of pictures: what they hold, the two halves of it, and sentences for what can't serve."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.recognition.pictures import SIDE, load_objects, read_picture


def save(path: Path, **arrays: object) -> str:
    np.savez(path, **arrays)
    return str(path)


def distinct(views) -> set[bytes]:
    return {view.tobytes() for view in views}


def test_digits_are_there_without_a_file() -> None:
    objects = load_objects(classes=3, views=10)
    assert objects.names == ("zero", "one", "two")
    assert not objects.features
    for name in objects.names:
        taught, asked = objects.taught[name], objects.asked[name]
        assert (len(taught), len(asked)) == (5, 5)
        assert not distinct(taught) & distinct(asked)
        for view in (*taught, *asked):
            assert view.shape == (SIDE, SIDE) and view.dtype == np.uint8
            assert view[0].min() > 200  # paper at the edge


def test_a_digit_is_dark_where_its_ink_is() -> None:
    data = load_digits()
    first = data.images[np.flatnonzero(data.target == 0)[0]]
    view = load_objects(classes=1, views=2).taught["zero"][0].astype(float)
    edges = np.linspace(0, SIDE, 13).round().astype(int)  # of the digit's 8 cells and 2 of paper
    means = np.array(
        [
            [view[a:b, c:d].mean() for c, d in zip(edges, edges[1:], strict=False)]
            for a, b in zip(edges, edges[1:], strict=False)
        ]
    )
    ink = (255.0 - means)[2:-2, 2:-2] / 255 * 16
    assert np.corrcoef(ink.ravel(), first.ravel())[0, 1] > 0.98


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two objects of six pictures, each of its own grey; one file broken, one that isn't one."""
    image = pytest.importorskip("PIL.Image", reason="needs the extra 'vision'")
    for number, name in enumerate(("mug", "book")):
        (tmp_path / name).mkdir()
        for k in range(6):
            grey = 100 * number + 10 * k
            picture = image.new("RGB", (64, 48), (grey, grey, grey))
            picture.save(tmp_path / name / f"{k}.png")
    (tmp_path / "mug" / "3.png").write_bytes(b"\x89PNG\r\n\x1a\n broken")
    (tmp_path / "mug" / "notes.txt").write_text("not a picture")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "empty").mkdir()
    return tmp_path


def test_a_folder_s_subfolders_are_the_objects(folder: Path) -> None:
    objects = load_objects(str(folder))
    assert objects.names == ("book", "mug")
    assert objects.skipped == 1
    greys = {
        name: [int(view[0, 0, 0]) for view in (*objects.taught[name], *objects.asked[name])]
        for name in objects.names
    }
    assert greys == {"mug": [0, 10, 20, 40, 50], "book": [100, 110, 120, 130, 140, 150]}
    assert objects.taught["book"][0].shape == (48, 64, 3)
    assert len(objects.taught["book"]) == 3


def test_of_a_large_folder_some_files_are_read_and_broken_ones_replaced(folder: Path) -> None:
    objects = load_objects(str(folder), views=4)
    greys = [int(v[0, 0, 0]) for v in (*objects.taught["mug"], *objects.asked["mug"])]
    assert len(greys) == 4 and greys == sorted(set(greys)) and 30 not in greys


def test_photographs_are_turned_upright_and_made_smaller(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="needs the extra 'vision'")
    (tmp_path / "mug").mkdir()
    pixels = np.zeros((400, 800, 3), np.uint8)
    pixels[:, :400] = 255  # bright on its left
    tag = image.Exif()
    tag[0x0112] = 6  # the camera was turned: the left is the top
    for k in range(2):
        image.fromarray(pixels).save(tmp_path / "mug" / f"{k}.jpg", exif=tag)
    (view,) = load_objects(str(tmp_path)).taught["mug"]
    assert view.shape == (320, 160, 3)
    assert view[:100].min() > 240 and view[-100:].max() < 15


def test_pictures_of_16_bits_and_cut_out_ones_are_as_a_viewer_shows_them(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="needs the extra 'vision'")
    grey = np.linspace(0, 65535, 64).reshape(8, 8).astype(np.uint16)
    image.fromarray(grey).save(tmp_path / "deep.png")
    np.testing.assert_array_equal(
        read_picture(tmp_path / "deep.png"), (grey >> 8)[..., None] * [1, 1, 1]
    )
    cut = np.zeros((8, 8, 4), np.uint8)
    cut[:4, :, 0], cut[:4, :, 3] = 200, 255  # red, and nothing below
    image.fromarray(cut).save(tmp_path / "cut.png")
    image.fromarray(cut).quantize().save(tmp_path / "few.png")
    for name in ("cut.png", "few.png"):
        seen = read_picture(tmp_path / name)
        assert (seen[:4] == [200, 0, 0]).all() and (seen[4:] == 255).all()


def test_square_pictures_as_rows_with_a_test_part_of_their_own(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 256, (40, 784), np.uint8), np.arange(40) % 4
    path = save(tmp_path / "a.npz", X_train=X[:30], y_train=y[:30], X_test=X[30:], y_test=y[30:])
    objects = load_objects(path, classes=2, views=6)
    assert objects.names == ("0", "1")
    rows = {row.tobytes(): k for k, row in enumerate(X)}
    for name in objects.names:
        taught = [rows[view.tobytes()] for view in objects.taught[name]]
        asked = [rows[view.tobytes()] for view in objects.asked[name]]
        assert len(taught) == 3 and max(taught) < 30 <= min(asked)
        assert {y[k] for k in (*taught, *asked)} == {int(name)}
        assert objects.taught[name][0].shape == (28, 28)


def test_feature_vectors_with_names(tmp_path: Path) -> None:
    X, y = np.arange(24.0).reshape(8, 3).astype(np.float16), np.array([1, 0] * 4, np.int8)
    path = save(tmp_path / "a.npz", X=X, y=y, classes=np.array(["mug", "book"]))
    objects = load_objects(path)
    assert objects.features and objects.names == ("mug", "book")
    np.testing.assert_array_equal(objects.taught["book"], X[[0, 2]])
    np.testing.assert_array_equal(objects.asked["book"], X[[4, 6]])
    assert objects.taught["mug"][0].dtype == np.float32


def test_numbers_of_one_name_are_one_class(tmp_path: Path) -> None:
    X = np.arange(12.0, dtype=np.float32).reshape(6, 2)
    path = save(tmp_path / "a.npz", X=X, y=np.arange(6) % 3, classes=["mug", "cup", "mug"])
    objects = load_objects(path)
    assert objects.names == ("mug", "cup")
    mugs = [*objects.taught["mug"], *objects.asked["mug"]]
    np.testing.assert_array_equal(mugs, X[[0, 3, 2, 5]])


@pytest.mark.parametrize("y", [np.array([1.0, 0.0] * 2), np.array([b"mug", b"b\xc3\xa4r"] * 2)])
def test_labels_of_a_table_and_in_bytes_are_those_that_they_stand_for(tmp_path: Path, y) -> None:
    names = np.array(["bär", "mug"]) if y.dtype.kind == "f" else np.array([b"bar", b"mug"])
    path = save(tmp_path / "a.npz", X=np.zeros((4, 3)), y=y, classes=names)
    assert sorted(load_objects(path).names) == ["bär", "mug"]


def test_coloured_pictures_with_text_for_labels(tmp_path: Path) -> None:
    X = np.zeros((4, 5, 6, 3), np.uint8)
    path = save(tmp_path / "a.npz", X=X, y=np.array(["mug", "book", "mug", "book"]))
    objects = load_objects(path)
    assert objects.names == ("book", "mug") and objects.taught["mug"][0].shape == (5, 6, 3)


GREY = np.zeros((4, 9), np.uint8)
TAUGHT = {"X_train": np.zeros((4, 9)), "y_train": [0] * 4}


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"X": GREY}, "no array y; it has: X"),
        ({"X": GREY, "y": np.zeros(3)}, r"y has the shape \(3,\) where X has 4 rows"),
        ({"X": GREY[:, :7], "y": np.zeros(4)}, r"X is uint8 of shape \(4, 7\); it must be"),
        ({"X": GREY.astype(int), "y": np.zeros(4)}, "X is int64"),
        ({"X": GREY, "y": np.arange(4)}, "'0' has too few pictures or vectors, 1"),
        ({"X": GREY, "y": [0, 0, 5, 5], "classes": ["mug"]}, "y has 5, which `classes`"),
        ({"X_train": GREY, "y_train": [0, 0, 0, np.nan]}, "y_train has values that are no number"),
        ({"X": GREY, "y": np.array([{}] * 4)}, "is damaged, or has something else"),
        ({"X": GREY, "y": np.array([b"\xff"] * 4)}, "y holds bytes that are no UTF-8"),
        ({"X": np.full((4, 9), np.inf), "y": np.zeros(4)}, "X has 4 rows with numbers .* row 0"),
        (TAUGHT | {"X_test": np.zeros((1, 2)), "y_test": [0]}, r"X_test is .* \(1, 2\) where X_tr"),
        (TAUGHT | {"X_test": GREY[:1], "y_test": [0]}, "X_test is uint8 of"),
    ],
)
def test_a_file_that_can_t_serve_is_refused(tmp_path: Path, arrays, said: str) -> None:
    path = save(tmp_path / "a.npz", **arrays)
    with pytest.raises(ConfigurationError, match=said) as refused:
        load_objects(path)
    assert path in str(refused.value)


def test_what_is_no_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="there is no folder or file"):
        load_objects(str(tmp_path / "missing"))
    with pytest.raises(ConfigurationError, match="has no subfolder with pictures"):
        load_objects(str(tmp_path))
    (tmp_path / "a.txt").write_text("text")
    with pytest.raises(ConfigurationError, match="neither a folder"):
        load_objects(str(tmp_path / "a.txt"))
    path = Path(save(tmp_path / "a.npz", X=np.arange(9999, dtype=np.uint8).reshape(-1, 9), y=[0]))
    whole = path.read_bytes()
    path.write_bytes(whole[:200] + bytes(100) + whole[300:])
    with pytest.raises(ConfigurationError, match="is damaged"):
        load_objects(str(path))


@pytest.mark.parametrize(
    ("name", "told"),
    [("unknown", "what unknown objects are called"), ("y" * 150, "max_label_length")],
)
def test_a_name_that_cannot_be_taught_is_refused_at_the_start(
    name: str, told: str, tmp_path: Path
) -> None:
    X, y = np.eye(4), np.array([0, 0, 1, 1])
    path = save(tmp_path / "objects.npz", X=X, y=y, classes=np.array(["mug", name]))
    with pytest.raises(ConfigurationError, match=f"can't be taught, rename it: .*{told}"):
        load_objects(path)
    assert load_objects(path, classes=1).names == ("mug",)  # that it is not shown hinders nothing


def test_names_are_as_the_recogniser_keeps_them(tmp_path: Path, folder: Path) -> None:
    X, y = np.arange(8.0, dtype=np.float32).reshape(4, 2), np.array([0, 0, 1, 1])
    path = save(tmp_path / "a.npz", X=X, y=y, classes=np.array(["cafe\u0301", " mug"]))
    objects = load_objects(path)
    assert objects.names == ("caf\u00e9", "mug") == tuple(objects.asked)
    np.testing.assert_array_equal(objects.taught["mug"], X[[2]])
    np.testing.assert_array_equal(objects.asked["caf\u00e9"], X[[1]])
    (folder / "mug").rename(folder / " mug")
    (folder / "book").rename(folder / "cafe\u0301")
    objects = load_objects(str(folder))
    assert objects.names == ("mug", "caf\u00e9") == tuple(objects.asked)
    assert objects.skipped == 1 and objects.taught["mug"][0][0, 0, 0] == 0


@pytest.mark.parametrize("names", [("mug", " mug"), ("caf\u00e9", "cafe\u0301")])
def test_two_names_that_the_recogniser_keeps_as_one_are_refused(tmp_path: Path, names) -> None:
    X, y = np.eye(4), np.array([0, 0, 1, 1])
    path = save(tmp_path / "a.npz", X=X, y=y, classes=np.array(names))
    with pytest.raises(ConfigurationError, match="would both be taught as .*, rename one") as told:
        load_objects(path)
    assert all(ascii(name) in str(told.value) for name in names)
    assert load_objects(path, classes=1).names == names[:1]
