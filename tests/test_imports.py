"""Imports between layers go leftward only."""

import ast
from pathlib import Path

import bltm

LEVEL = {
    "core": 0,
    "noise": 1,
    "data": 1,
    "nets": 1,
    "losses": 1,
    "transition": 1,
    "engine": 2,
    "methods": 3,
    "audit": 4,
    "runs": 5,
    "benchmark": 6,
    "report": 7,
    "cli": 8,
}
ROOT = Path(bltm.__file__).parent


def imported_layers(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} uses a relative import"
            names.add(node.module or "")
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    parts = [name.split(".") for name in names if name.startswith("bltm.")]
    return {part[1] for part in parts} & set(LEVEL)


def violations() -> list[str]:
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        layer = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if layer not in LEVEL:
            assert layer in ("__init__", "__main__"), f"{path} is in no layer"
            continue
        for target in imported_layers(path) - {layer}:
            allowed = LEVEL[target] < LEVEL[layer] and (layer, target) != ("methods", "noise")
            if not allowed:
                found.append(f"{path.relative_to(ROOT)} imports bltm.{target}")
    return found


def test_imports_between_layers_go_leftward() -> None:
    assert violations() == []


def test_methods_do_not_import_each_other() -> None:
    methods = ROOT / "methods"
    shared = {
        "base",
        "small_loss",
        "inputs",
        "transitions",
        "registry",
        "persistence",
        "__init__",
    }
    names = {p.stem for p in methods.glob("*.py")} | {
        p.name for p in methods.iterdir() if p.is_dir() and p.name != "__pycache__"
    }
    for path in methods.rglob("*.py"):
        own = path.relative_to(methods).parts[0].removesuffix(".py")
        if own in shared:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bltm.methods."):
                other = (node.module or "").split(".")[2]
                assert other in shared | {own}, f"{path} imports method {other}"
                assert other in names


def test_only_the_loop_calls_backward() -> None:
    callers = [
        str(path.relative_to(ROOT))
        for path in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and (node.func.attr == "backward" or ast.unparse(node.func).endswith("autograd.grad"))
    ]
    assert callers == ["engine/loop.py"]


def test_no_module_sets_global_seeds_or_unpickles() -> None:
    forbidden = ("np.random.seed", "torch.manual_seed(", "allow_pickle=True", "import pickle")
    # This file reads pickles with a reader that knows a handful of inert names.
    exceptions = {("data/cifar_pickle.py", "import pickle")}
    for path in ROOT.rglob("*.py"):
        code = path.read_text(encoding="utf-8")
        for text in forbidden:
            if (path.relative_to(ROOT).as_posix(), text) not in exceptions:
                assert text not in code, f"{path} has {text}"
