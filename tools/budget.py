"""The sizes of the repository's parts, held against `tools/budget.yaml`.

    python tools/budget.py          # every size beside its budget; exits with 1 where one is above
    python tools/budget.py --write  # lowers the budget to today's sizes, and raises nothing

A size above its budget is raised by hand, in a commit of its own that says what users gain.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
BUDGET = Path(__file__).with_suffix(".yaml")
PACKAGE = ROOT / "semiparam_dynamics"
COMPILERS = ("compiled", "compiled_in_turn", "compiled_as_written", "compiled_in_order")
HEADER = """\
# What the repository may hold at most: lines of Python and files of each room and folder, words of
# the users' pages, and the largest function and class. `python tools/budget.py` says where it is.
"""


def python_files(folder: Path) -> list[Path]:
    """The Python files of a folder that git tracks or would."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "--", f"{folder}/*.py"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for name in names.splitlines() if (path := ROOT / name).is_file()]


def lines(paths: list[Path]) -> int:
    """How many lines the files have together."""
    return sum(len(path.read_bytes().splitlines()) for path in paths)


def words(paths: list[Path]) -> int:
    """How many words the files have together."""
    return sum(len(path.read_text(encoding="utf-8").split()) for path in paths)


def sizes() -> dict[str, int]:
    """Every size by its name in the budget."""
    package = python_files(PACKAGE)
    found = {"package lines": lines(package), "package files": len(package)}
    for room in sorted(path for path in PACKAGE.iterdir() if (path / "__init__.py").exists()):
        inside = [path for path in package if path.is_relative_to(room)]
        found[f"{room.name} lines"], found[f"{room.name} files"] = lines(inside), len(inside)
    found["test lines"] = lines(python_files(ROOT / "test"))
    aside = ("benchmarks", "tools", "fuzz")
    found["benchmark, tool and fuzz lines"] = sum(lines(python_files(ROOT / n)) for n in aside)
    found["words for users"] = words([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in package]
    return found | of_code(trees)


def of_code(trees: list[ast.Module]) -> dict[str, int]:
    """The sizes of functions, classes and constants."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found = [node for tree in trees for node in ast.walk(tree) if isinstance(node, kinds)]
    classes = [node for node in found if isinstance(node, ast.ClassDef)]
    functions = [node for node in found if not isinstance(node, ast.ClassDef)]
    return {
        "lines of the longest function": max(f.end_lineno - f.lineno + 1 for f in functions),
        "parameters of a function": max(map(n_parameters, functions)),
        "attributes of a class": max(map(n_attributes, classes)),
        "compiled functions": sum(map(is_compiled, functions)),
        "numeric constants": sum(1 for tree in trees for _ in constants(tree)),
    }


def n_parameters(function: ast.FunctionDef) -> int:
    """How many arguments a function has, `self` not counted."""
    given = function.args
    names = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def n_attributes(node: ast.ClassDef) -> int:
    """How many attributes the methods of a class set on `self`."""
    return len(
        {
            inner.attr
            for inner in ast.walk(node)
            if isinstance(inner, ast.Attribute)
            and isinstance(inner.ctx, ast.Store)
            and isinstance(inner.value, ast.Name)
            and inner.value.id == "self"
        }
    )


def is_compiled(function: ast.FunctionDef) -> bool:
    """Whether a function is compiled before it runs."""
    return any(isinstance(d, ast.Name) and d.id in COMPILERS for d in function.decorator_list)


def constants(tree: ast.Module) -> Iterator[str]:
    """The names of a module's numeric constants."""
    for node in tree.body:
        value = getattr(node, "value", None)
        if isinstance(node, ast.Assign | ast.AnnAssign) and value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and target.id.isupper() and _is_numeric(value):
                yield target.id


def _is_numeric(value: ast.expr) -> bool:
    inner = [node for node in ast.walk(value) if not isinstance(node, ast.Load | ast.operator)]
    allowed = (ast.Constant, ast.UnaryOp, ast.BinOp, ast.Tuple, ast.USub)
    numbers = [node for node in inner if isinstance(node, ast.Constant)]
    return (
        bool(numbers)
        and all(isinstance(node, allowed) for node in inner)
        and all(type(node.value) in (int, float) for node in numbers)
    )


def budget() -> dict[str, int]:
    """The sizes that are allowed."""
    return yaml.safe_load(BUDGET.read_text(encoding="utf-8"))


def main() -> int:
    """Compare, or lower the budget; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="lower the budget to today's sizes")
    write = parser.parse_args().write
    found, allowed = sizes(), budget() if BUDGET.exists() else {}
    if write:
        lowered = {name: min(size, allowed.get(name, size)) for name, size in found.items()}
        BUDGET.write_text(HEADER + yaml.safe_dump(lowered, sort_keys=False), encoding="utf-8")
        allowed = lowered
    for name, size in found.items():
        print(f"{name:34}{size:8}{allowed.get(name, 0):8}")
    return int(found.keys() != allowed.keys() or any(found[k] > allowed[k] for k in found))


if __name__ == "__main__":
    sys.exit(main())
