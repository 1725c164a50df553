"""The program as a user starts it, and what its clients send.

Each file x_door.py beside this one is a test of its own, `ctest -R doors/x`, called with PROGRAM and
the folder of the clients' environment. It holds subclasses of `DoorCase` and ends with `main()`.
Nothing of the server is put together by hand: a case names flags of `foretoken serve` and talks to
the address that the program prints.
"""

import http.client
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

from client_environment import enter_environment  # noqa: E402
from server_process import Server  # noqa: E402

BUNDLED = str(ROOT / "models" / "foretoken-7m")
USER = [{"role": "user", "content": "Tell me a story about a cat."}]


class Answer:
    """Status, headers and body of an HTTP answer."""

    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def text(self):
        return self.body.decode("utf-8")

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def events(self):
        """The JSON of each `data:` line of a stream, without [DONE]."""
        lines = [line[6:] for line in self.text.splitlines() if line.startswith("data: ")]
        return [json.loads(line) for line in lines if line != "[DONE]"]


def program():
    """The path of the program under test."""
    return sys.argv[1]


def run_program(*arguments, timeout=600, environment=None, stdin=None):
    """Runs `foretoken` with `arguments` to its end; returns the completed process with its texts."""
    given = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    return subprocess.run([program(), *arguments], capture_output=True, text=True, check=False,
                          timeout=timeout, env={**os.environ, **(environment or {})}, **given)


class DoorCase(unittest.TestCase):
    """Cases that share one `foretoken serve` with the class's `flags`."""

    flags = ()
    model = BUNDLED

    @classmethod
    def setUpClass(cls):
        cls.server = Server(program(), cls.model, *cls.flags)
        cls.server.__enter__()
        cls.url = cls.server.url

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None, None, None)

    @classmethod
    def send(cls, method, path, body=None, headers=None):
        """Sends a request; `body` is bytes, or anything that becomes JSON."""
        parts = urllib.parse.urlsplit(cls.url)
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=300)
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        try:
            connection.request(method, path, data,
                               {"Content-Type": "application/json", **(headers or {})})
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def get(self, path, status=200, **more):
        answer = self.send("GET", path, **more)
        self.assertEqual(answer.status, status, answer.body)
        return answer

    def post(self, path, body, status=200, **more):
        answer = self.send("POST", path, body, **more)
        self.assertEqual(answer.status, status, answer.body)
        return answer

    def log(self):
        """What the server has written to its error output so far."""
        return "".join(self.server.errors)


def model_copy(**changes):
    """A folder like the bundled model's in a temporary place, which the caller cleans up.

    `changes` maps file names, their dots written as "__" ("generation_config__json"), to texts, to
    objects that are written as JSON, or to None for files to be left out.
    """
    holder = tempfile.TemporaryDirectory()
    folder = pathlib.Path(holder.name)
    changed = {name.replace("__", "."): value for name, value in changes.items()}
    for file in pathlib.Path(BUNDLED).iterdir():
        if file.name not in changed:
            (folder / file.name).symlink_to(file)
    for name, value in changed.items():
        if isinstance(value, bytes):
            (folder / name).write_bytes(value)
        elif value is not None:
            text = value if isinstance(value, str) else json.dumps(value)
            (folder / name).write_text(text, encoding="utf-8")
    return holder


def one_layer():
    """The bundled model's weights and config.json with its first layer alone, for `model_copy`.

    Its steps take a fifth of the time, and its text means nothing: for cases whose text follows from the
    request, and for those that want none.
    """
    folder = pathlib.Path(BUNDLED)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    data = (folder / "model.safetensors").read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    header, kept = {}, b""
    for name, tensor in json.loads(data[8:begin]).items():
        if name == "__metadata__" or re.match(r"model\.layers\.(?!0\.)", name):
            continue
        first, end = tensor["data_offsets"]
        header[name] = {**tensor, "data_offsets": [len(kept), len(kept) + end - first]}
        kept += data[begin + first:begin + end]
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return {"config__json": {**config, "num_hidden_layers": 1},
            "model__safetensors": len(text).to_bytes(8, "little") + text + kept}


def use_clients(*packages):
    """Goes on under the clients' environment; to be called before importing one of `packages`."""
    enter_environment(sys.argv[2], packages or ("openai", "anthropic"))


def main():
    """Runs the cases of the calling file: PROGRAM [VENV] [unittest arguments]."""
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
