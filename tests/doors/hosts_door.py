#!/usr/bin/env python3
"""What hosts, containers and supervisors leave to a process or take from it.

Names of reports: llamafile 479 (nothing to write to), 971 (sockets), openvox-operator 438 (HOME), vllm 24885
and 36666 (signals), llama 24884 (damaged files).
"""

import os
import pathlib
import resource
import signal
import socket
import subprocess
import tempfile
import unittest

import door


def limited(what, most):
    return lambda: resource.setrlimit(what, (most, most))


class Hosts(unittest.TestCase):
    def run_bare(self, *arguments, **more):
        return subprocess.run([door.program(), *arguments], capture_output=True, text=True, check=False,
                              timeout=600, **more)

    def test_no_variables(self):
        result = self.run_bare("generate", "Once", "--model", door.BUNDLED, "--max-tokens", "2", env={})
        self.assertEqual(result.returncode, 0, result.stderr)
        for home in ("/nonexistent", "/dev/null", ""):
            result = self.run_bare("generate", "Once", "--model", door.BUNDLED, "--max-tokens", "2",
                                   env={"HOME": home})
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_closed_input_and_little_stack(self):
        result = self.run_bare("generate", "Once", "--model", door.BUNDLED, "--max-tokens", "2",
                               preexec_fn=lambda: os.close(0))
        self.assertEqual(result.returncode, 0, result.stderr)
        result = self.run_bare("generate", "Once", "--model", door.BUNDLED, "--max-tokens", "2",
                               preexec_fn=limited(resource.RLIMIT_STACK, 1 << 20))
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_files_that_may_not_grow(self):
        with tempfile.TemporaryDirectory() as folder:
            result = self.run_bare("convert", "--model", door.BUNDLED, "--type", "q8_0", "-o",
                                   os.path.join(folder, "x.gguf"),
                                   preexec_fn=limited(resource.RLIMIT_FSIZE, 20000))
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("foretoken: error: ", result.stderr)
        self.assertIn("x.gguf", result.stderr)


class Supervisors(unittest.TestCase):
    def test_a_process_and_its_group_are_signalled(self):
        """As timeout, npm and terminals do: one wish, after which the socket is gone."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "socket")
            with subprocess.Popen([door.program(), "serve", door.BUNDLED, "--uds", str(path)],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
                self.assertIn(b"serving", process.stdout.readline())
                with socket.socket(socket.AF_UNIX) as client:
                    client.connect(str(path))
                process.send_signal(signal.SIGSTOP)
                os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
                for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCONT):
                    process.send_signal(number)
                self.assertEqual(process.wait(600), 0)
            self.assertFalse(path.exists())


if __name__ == "__main__":
    door.main()
