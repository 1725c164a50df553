#!/usr/bin/env python3
"""Fails when an include points up or sideways in the layers of src/ and in the rooms of a layer, when a
source above device/ and kernels/ asks which type of device it has, and when one asks an object for its
class; and when the table of rooms in docs/ARCHITECTURE.md lacks one of ROOMS."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
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
    "serve": {"base", "config", "text", "http", "chat"},
    "apps": LIBRARY | {"http", "chat", "bench", "serve", "convert"},
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
    "engine": ["support", "grammar", "request", "offload", "step", "measure", "start", "", "parallel"],
    "http": ["message", "server"],
    "chat": ["scan", "calls", ""],
    "bench": ["samples", ""],
    "serve": ["fields", "metrics", "answer", "openai", "flow", "anthropic", "responses", "llamacpp",
              "sglang", "openapi", "routes"],
    "apps": ["terminal", "flags", "options", "generate", "batch", "bench", "chat", "matrix", "tune", "manual", ""],
}
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')
CUDA_HEADER = re.compile(r"^(cuda|cub|cublas|nccl|cutlass|cute|flashinfer|sm90|nvrtc|cooperative_groups)")
SUFFIXES = {".h", ".cpp", ".cu", ".cuh"}
BELOW_QUESTIONS = ("src/device/", "src/kernels/")
# Rows of a table by type of device are data: no code asks there.
TABLES_BY_DEVICE = {"src/attention/families.cpp"}
COMMENT = re.compile(r"//.*")
DEVICE_QUESTION = re.compile(r"""\bDeviceType::k\w+|[!=]=\s*"(?:cpu|cuda)"|"(?:cpu|cuda)"\s*[!=]=|\bis_(?:cpu|cuda|gpu)\b""")
# CLI11 tells its faults apart by their classes alone.
CLASS_QUESTION = re.compile(r"\bdynamic_(?:pointer_)?cast<(?!const CLI::)")
DEVICE_REMEDY = ("a field of DeviceTraits (src/device/device_traits.h) that says what is asked, as "
                 "uses_host_memory, and device_traits(device.type()) or find_device_type(name) here")
CLASS_REMEDY = "a virtual function of the interface, or a field of its traits"


def includes(path):
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1) == '"', match.group(2)


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
        top = name.split("/")[0]
        where = f"{path.relative_to(ROOT)}:{number}"
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


def check_questions(name, text):
    """Sentences about a source that asks for a device by its name, or for a class."""
    for number, line in enumerate(text.splitlines(), 1):
        code = COMMENT.sub("", line)
        device = DEVICE_QUESTION.search(code)
        if device and not name.startswith(BELOW_QUESTIONS) and name not in TABLES_BY_DEVICE:
            yield f"{name}:{number}: {device[0]} asks which device it is; needed is {DEVICE_REMEDY}"
        if CLASS_QUESTION.search(code):
            yield f"{name}:{number}: dynamic_cast asks an object for its class; needed is {CLASS_REMEDY}"


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
            yield f"{path.relative_to(ROOT)}:{number}: public headers use std and <foretoken/...> only; hide what needs more behind them in src/"


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
            problems.extend(check_questions(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")))
    problems.extend(check_rooms_page((ROOT / "docs/ARCHITECTURE.md").read_text(encoding="utf-8")))
    for path in sources(ROOT / "python"):
        problems.extend(check_questions(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")))
    for path in sources(ROOT / "include"):
        problems.extend(check_public(path))
    print("\n".join(problems) if problems else "layers: all includes point downwards, no source asks which device it has")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
