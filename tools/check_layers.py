#!/usr/bin/env python3
"""Fails when an include points up or sideways in the layers of src/ and in the rooms of a layer, and when
the table of rooms in docs/ARCHITECTURE.md lacks one of ROOMS. python/src has the folders of PYTHON and the headers of
PYTHON_HEADERS below it.

Public headers include std and each other, examples the public headers, and an include that is no plain name
in quotes or angle brackets is an error, as nobody could say where it points."""

import re
import sys

from tree import ROOT

LIBRARY = {"base", "group", "device", "kv", "gguf", "text", "kernels", "attention", "compat", "model",
           "draft", "spec", "config", "sched", "engine", "net", "hub"}
# Folder -> the folders of src/ that it may include besides itself. The public headers of
# include/foretoken are open to all.
ALLOWED = {
    "base": set(),
    "group": {"base"},
    "device": {"base", "group"},
    "kv": {"base"},
    "spec": {"base"},
    "config": {"base"},
    "gguf": {"base"},
    "text": {"base", "gguf"},
    "net": {"base"},
    "otlp": {"base", "text", "net"},
    "hub": {"base", "gguf", "net"},
    "kernels": {"base", "spec", "group", "device"},
    "attention": {"base", "spec", "group", "device", "kernels"},
    "compat": {"base", "spec", "group", "device", "kernels", "attention"},
    "model": {"base", "spec", "group", "gguf", "device", "kernels", "attention", "compat"},
    "draft": {"base", "spec", "group", "gguf", "device", "kernels", "attention", "compat",
              "model"},
    "convert": {"base", "gguf", "text", "model"},
    "sched": {"base", "spec", "kv"},
    "engine": LIBRARY - {"engine"},
    "http": {"base"},
    "chat": {"base"},
    "bench": {"base", "text", "net"},
    "serve": {"base", "config", "text", "otlp", "http", "chat", "compat"},
    # Commands show, choose and convert what lies below the engine; what makes its steps they do not need.
    "apps": LIBRARY - {"group", "kv", "sched", "spec"} | {"otlp", "http", "chat", "bench", "serve", "convert"},
}
# What python/src may include besides its own files, as serve/ the public engine and what reads its requests.
PYTHON = {"base", "config", "text", "serve"}
# Other headers that it needs, each with its reason.
PYTHON_HEADERS = {
    "apps/options/models/bundled_roots.h": "a wheel has the bundled models at another place",
    "apps/options/models/default_model.h": "names that the program takes for a model",
    "apps/options/models/speculative_list.h": "speculative_config as the program reads it",
    "engine/request/chat_arguments.h": "arguments of a chat template as the engine checks them",
    "engine/start/locate_model.h": "where a tokenizer without an engine is read from",
}
# The rooms of a folder, low to high: a room includes itself and those before it; "" are the files that
# lie in the folder itself.
ROOMS = {
    "base": ["text", "", "files"],
    "device": ["", "cpu", "cuda"],
    "group": ["wire", "", "mpi"],
    "kernels": ["", "cpu", "cuda", "quant", "rows", "sampling", "gemm", "lora", "flex", "attention",
                "linear", "latent", "experts", "draft", "step", "comm", "devices"],
    "gguf": ["blocks", "container", "vocabulary", ""],
    "draft": ["parts", ""],
    "model": ["files", "config", "weights", "layer", "stack", "arch", "", "heads"],
    "engine": ["grammar", "request", "offload", "step", "measure", "start", "support", "", "parallel"],
    "http": ["message", "server"],
    "chat": ["scan", "calls", ""],
    "bench": ["samples", ""],
    "serve": ["fields", "metrics", "traces", "answer", "openai", "flow", "anthropic", "responses", "llamacpp",
              "sglang", "tgi", "tei", "ollama", "openapi", "routes"],
    "apps": ["terminal", "flags", "options", "generate", "batch", "bench", "chat", "matrix", "tune", "manual", ""],
}
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')
CUDA_HEADER = re.compile(r"^(cuda|cub|cublas|nccl|cutlass|cute|flashinfer|sm90|nvrtc|cooperative_groups)")
SUFFIXES = {".h", ".cpp", ".cu", ".cuh"}
# Comments between the words of a directive are dropped before it is read.
DIRECTIVE = re.compile(r"^\s*#\s*include\b")
BETWEEN = re.compile(r"/\*.*?\*/")


def includes(path):
    """(line, whether in quotes, name) of each include; a name of None is none that can be read."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if "include" not in line:
            continue
        line = BETWEEN.sub(" ", line)
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1) == '"', match.group(2)
        elif DIRECTIVE.match(line):
            yield number, True, None


def check_room(path, folder, name, where):
    """An include within the folder, by the order of its rooms."""
    order = ROOMS.get(folder, [""])
    root = ROOT / folder if folder == "apps" else ROOT / "src" / folder

    def room_of(file):
        parts = file.relative_to(root).parts
        return parts[0] if len(parts) > 1 else ""

    included = next(base / name for base in (ROOT / "src", ROOT) if (base / name).exists())
    own, other = room_of(path), room_of(included)
    for room in (own, other):
        if room not in order:
            yield f"{where}: the room {folder}/{room} is not in the table of tools/check_layers.py; add its place to ROOMS"
            return
    if order.index(other) > order.index(own):
        yield f'{where}: {folder}/{own} must not include "{name}", which is above it (ROOMS in tools/check_layers.py); move what is needed down'


def check_source(path, folder, allowed):
    in_cuda_folder = "cuda" in path.relative_to(ROOT).parts
    for number, quoted, name in includes(path):
        where = f"{path.relative_to(ROOT)}:{number}"
        if name is None:
            yield f"{where}: an include of a macro hides its layer; write the header's name"
            continue
        top = name.split("/")[0]
        if quoted and top not in allowed | {folder}:
            yield f'{where}: {folder}/ must not include "{name}", which lies above or beside it (ALLOWED in tools/check_layers.py); move what is needed down'
        elif not quoted and (ROOT / "src" / name).exists():
            yield f'{where}: <{name}> is a header of this project; write "{name}", so that its layer is seen'
        elif not quoted and CUDA_HEADER.match(name) and not in_cuda_folder:
            yield f"{where}: <{name}> belongs below a cuda/ folder; move what needs it to one"
        elif quoted and not any((base / name).exists() for base in (ROOT / "src", ROOT)):
            yield f'{where}: "{name}" does not exist; includes are relative to src/, those of apps/ to the root of the tree'
        elif quoted and top == folder:
            yield from check_room(path, folder, name, where)


def check_rooms_page(page):
    """Sentences about the table of rooms in docs/ARCHITECTURE.md, which is to have those of ROOMS."""
    for folder, rooms in ROOMS.items():
        row = next((line for line in page.splitlines() if line.startswith(f"| `{folder}` | ")), "")
        told = re.findall(r"`(\w+)/?`", row.partition("` | ")[2])
        wanted = [room for room in rooms if room]
        if [room for room in told if room in wanted] != wanted:
            yield (f"docs/ARCHITECTURE.md: the table of rooms needs a row | `{folder}` | of {', '.join(wanted)}, "
                   "in this order, as ROOMS of tools/check_layers.py has them")


def check_public(path):
    for number, quoted, name in includes(path):
        if quoted or ("/" in name and not name.startswith("foretoken/")):
            yield f"{path.relative_to(ROOT)}:{number}: public headers and examples use std and <foretoken/...> only; hide what needs more behind them in src/"


def check_exists(path):
    """Includes of what is not built everywhere, as tests on a GPU, in the places where their builds look."""
    bases = [path.parent, *(ROOT / base for base in ("src", "tests", "tests/cuda", "tools", ".", "python/src"))]
    for number, quoted, name in includes(path):
        if quoted and name and not any((base / name).exists() for base in bases):
            yield f'{path.relative_to(ROOT)}:{number}: "{name}" does not exist; it may have moved'


def check_python(paths, headers):
    """Includes of python/src, each of `headers` is needed."""
    unused = set(headers)
    for path in paths:
        for number, quoted, name in includes(path):
            unused.discard(name)
            where = f"{path.relative_to(ROOT)}:{number}"
            if name is None:
                yield f"{where}: an include of a macro hides its layer; write the header's name"
            elif not quoted and any((base / name).exists() for base in (ROOT / "src", ROOT)):
                yield f'{where}: <{name}> is a header of this project; write "{name}", so that its layer is seen'
            elif quoted and (".." in name or not (path.parent / name).exists()) and name.split("/")[0] not in PYTHON and name not in headers:
                yield (f'{where}: python/ must not include "{name}", which is no face of the engine; use the public engine, '
                       "or say in PYTHON_HEADERS of tools/check_layers.py why it is needed")
    for name in sorted(unused):
        yield f"tools/check_layers.py: python/src does not include {name} any more; take it out of PYTHON_HEADERS"


def sources(folder):
    return sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES)


def main():
    problems = []
    for folder in sorted((ROOT / "src").iterdir()):
        if folder.is_dir() and folder.name not in ALLOWED:
            problems.append(f"src/{folder.name}: not in the table of tools/check_layers.py; add what it may include to ALLOWED")
    for name, allowed in ALLOWED.items():
        folder = ROOT / name if name == "apps" else ROOT / "src" / name
        for path in sources(folder):
            problems.extend(check_source(path, name, allowed))
    problems.extend(check_rooms_page((ROOT / "docs/ARCHITECTURE.md").read_text(encoding="utf-8")))
    for path in [*sources(ROOT / "include"), *sources(ROOT / "examples")]:
        problems.extend(check_public(path))
    for folder in ("tests", "tools", "bench", "python/src"):
        for path in sources(ROOT / folder):
            problems.extend(check_exists(path))
    problems.extend(check_python(sources(ROOT / "python/src"), PYTHON_HEADERS))
    print("\n".join(problems) if problems else "layers: all includes point downwards")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
