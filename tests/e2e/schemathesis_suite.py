#!/usr/bin/env python3
"""Requests of every kind that /openapi.json describes, right and wrong, against `foretoken serve`.

schemathesis_suite.py PROGRAM [VENV] [ARGUMENT...]: makes a virtual environment with schemathesis where
VENV has none; ends with 77 (skipped) where pip cannot install it. Arguments behind go to schemathesis
(--seed 7, --max-examples 400). schemathesis.toml says what is looked at.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

from server_process import Server

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = "schemathesis==4.32.5"
FLAGS = ["--kv-cache-memory-bytes", "67108864", "--enable-auto-tool-choice",
         "--tool-call-parser", "hermes", "--scheduling-policy", "priority",
         "--speculative-config", '{"method": "ngram", "num_speculative_tokens": 3}',
         "--enable-tokenizer-info-endpoint"]


def find_schemathesis(folder):
    """Its program inside the environment, or None."""
    program = folder / "bin" / "schemathesis"
    if program.exists():
        return program
    if not (folder / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    install = subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "--quiet", PACKAGE],
                             capture_output=True, text=True, check=False)
    if install.returncode != 0:
        print(install.stderr[-500:])
        return None
    return program


def main():
    arguments = sys.argv[2:]
    folder = pathlib.Path(arguments.pop(0) if arguments and not arguments[0].startswith("-")
                          else tempfile.gettempdir() + "/schemathesis-venv").resolve()
    schemathesis = find_schemathesis(folder)
    if schemathesis is None:
        print("skipped: pip cannot install schemathesis")
        return 77
    # It keeps a cache where it runs.
    with Server(sys.argv[1], *FLAGS) as server, tempfile.TemporaryDirectory() as where:
        environment = {**os.environ, "PYTHONPATH": str(HERE), "PYTHONDONTWRITEBYTECODE": "1",
                       "SCHEMATHESIS_HOOKS": "schemathesis_hooks"}
        return subprocess.run([schemathesis, "--config-file", HERE / "schemathesis.toml", "run",
                               server.url + "/openapi.json", *arguments],
                              cwd=where, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
