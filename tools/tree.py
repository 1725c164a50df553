"""The files of this tree that people wrote, and exceptions from rules, for the checks of tools/."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUFFIXES = {".h", ".hpp", ".inl", ".inc", ".cpp", ".cc", ".cu", ".cuh", ".def", ".rs", ".py", ".sh", ".js", ".mjs", ".html", ".css",
            ".cmake", ".in", ".yaml", ".yml", ".toml", ".service", ".sbatch", ".supp"}
NAMES = {"CMakeLists.txt", "Dockerfile"}
# What is data, or others wrote.
NOT_WRITTEN = ("src/serve/page/vendor/", "tests/text/data/", "tests/fuzz/corpus/", "tests/golden/", "models/")
# Of a tree without git, as a package of the sources is: what lies there and is no part of it.
NOT_OF_TREE = {".git", "build", "target", "node_modules", "__pycache__", "third_party", "_deps"}


def tracked(*patterns):
    """Paths of files that git has or would take, in the tree at ROOT."""
    done = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns], cwd=ROOT,
                          capture_output=True, text=True, check=False)
    names = done.stdout.splitlines() if done.returncode == 0 else [
        path.relative_to(ROOT).as_posix() for path in sorted(ROOT.rglob("*"))
        if path.is_file() and not NOT_OF_TREE & set(path.relative_to(ROOT).parts)]
    return [name for name in dict.fromkeys(names) if (ROOT / name).is_file()]


def is_script(path):
    """Whether a file without a suffix begins as scripts do."""
    with path.open("rb") as file:
        return file.read(2) == b"#!"


def written_sources():
    """Paths of sources and scripts, those without a suffix, too; no data."""
    for name in tracked():
        path = ROOT / name
        if name.startswith(NOT_WRITTEN):
            continue
        if path.suffix in SUFFIXES or path.name in NAMES or not path.suffix and is_script(path):
            yield name


def read_exceptions(lines):
    """(path, name) -> reason, of the lines "path: name: reason" that are exceptions from a check."""
    exceptions = {}
    for line in lines:
        if line.strip() and not line.startswith("#"):
            path, name, reason = (part.strip() for part in line.split(": ", 2))
            if not reason:
                raise ValueError(f"{path}: {name}: an exception needs a reason")
            exceptions[path, name] = reason
    return exceptions
