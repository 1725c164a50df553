"""A start with speculation: it does not wait for measurements, and gives their memory back.

Hosts, containers and supervisors, whatever they leave to it or send it, are at the end: of public reports
llamafile 479 and 971, openvox-operator 438, vllm 24885 and 36666.
FORETOKEN_TEST_WHOLE_DOORS=1 starts with every drafter; otherwise with one that has weights and one that has none."""

import os
import pathlib
import re
import resource
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import door
from server_process import Server

WHOLE = os.environ.get("FORETOKEN_TEST_WHOLE_DOORS") == "1"
METHODS = ("ngram", "draft_model", "eagle", "eagle3", "mtp") if WHOLE else ("ngram", "mtp")
PROMPT = "Once upon a time there was a cat"
OTHER = "The old man looked at the sea and"


class Started(Server):
    """A server with an own cache folder, whose log is kept."""

    def __init__(self, cache, *flags):
        super().__init__(door.program(), door.BUNDLED, *flags)
        self.command[self.command.index("warning")] = "info"
        self.command = ["env", f"XDG_CACHE_HOME={cache}", *self.command]

    def wait_for(self, text, seconds=120):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if any(text in line for line in list(self.errors)):
                return True
            time.sleep(0.05)
        return False

    @property
    def log(self):
        return "".join(self.errors)

    @property
    def resident(self):
        """Bytes, huge pages included."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) * 1024

    def text(self, prompt=PROMPT):
        door.DoorCase.url = self.url
        answer = door.DoorCase.send("POST", "/v1/completions",
                                    {"prompt": prompt, "max_tokens": 40, "temperature": 0})
        assert answer.status == 200, answer.body
        return answer.json["choices"][0]["text"]


def speculation(method):
    return ("--spec-method", method, "--spec-tokens", "4")


class FirstAndLaterStarts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.cache = pathlib.Path(cls.holder.name)
        with Started(cls.cache) as plain:
            cls.plain_text = plain.text()
            cls.plain_resident = plain.resident
            cls.other_text = plain.text(OTHER)
            cls.other_resident = plain.resident

    @classmethod
    def tearDownClass(cls):
        cls.holder.cleanup()

    def tables(self):
        return sorted(self.cache.glob("foretoken/step-times/*.json"))

    def test_measured_between_requests_and_kept(self):
        for number, method in enumerate(METHODS):
            with self.subTest(method=method):
                with Started(self.cache, *speculation(method)) as first:
                    self.assertEqual(first.text(), self.plain_text)
                    self.assertTrue(first.wait_for("step times: kept in "), first.log)
                    self.assertIn("step times: none are known", first.log)
                    self.assertLess(first.log.index("started in "),
                                    first.log.index("step times: measured in "))
                    self.assertEqual(len(self.tables()), number + 1)
                    self.assertLess(first.resident, 1.1 * self.plain_resident,
                                    f"{self.plain_resident} without speculation")
                    self.assertEqual(first.text(OTHER), self.other_text)
                    self.assertLess(first.resident, 1.1 * self.other_resident,
                                    f"{self.other_resident} without speculation")
                    self.assertEqual(first.text(), self.plain_text)
                with Started(self.cache, *speculation(method)) as second:
                    self.assertTrue(second.wait_for("step times: read from the cache"), second.log)
                    self.assertEqual(second.text(), self.plain_text)
                    self.assertNotIn("measured", second.log)
                self.assertEqual(len(self.tables()), number + 1)


class FormsBeforeTheTimesAreKnown(unittest.TestCase):
    """Measurements begin as soon as a request has its last token, while the device drafts on behind
    it: its graph was forgotten meanwhile, and the process ended in the wait for a grammar."""

    def test_pauses_in_between(self):
        body = {"prompt": PROMPT, "max_tokens": 60, "temperature": 0, "structured_outputs": {
            "choice": ["a story of a cat, a story of a dog, and a story of a cat and a dog"]}}
        for _ in range(3 if WHOLE else 1):
            with tempfile.TemporaryDirectory() as cache, \
                    Started(cache, *speculation("suffix")) as server:
                door.DoorCase.url = server.url
                for _ in range(8):
                    answer = door.DoorCase.send("POST", "/v1/completions", body)
                    self.assertEqual(answer.status, 200, answer.body)


class WhatTheCacheMayBe(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.cache = pathlib.Path(holder.name)

    def start(self, *flags):
        return Started(self.cache, *speculation("ngram"), *flags)

    def test_a_damaged_table_is_passed_over_and_replaced(self):
        with self.start() as first:
            self.assertTrue(first.wait_for("step times: kept in "), first.log)
        (table,) = self.cache.glob("foretoken/step-times/*.json")
        table.write_text("{\"format\": 3, \"target\": ", encoding="utf-8")
        with self.start() as second:
            self.assertTrue(second.wait_for("step times: kept in "), second.log)
            self.assertEqual(second.log.count("is passed over"), 1, second.log)
        with self.start() as third:
            self.assertTrue(third.wait_for("step times: read from the cache"), third.log)

    def test_a_folder_that_cannot_be_written_is_no_fault(self):
        (self.cache / "foretoken").write_text("not a folder", encoding="utf-8")
        with self.start() as server:
            self.assertTrue(server.wait_for("step times: not kept"), server.log)
            self.assertTrue(server.text())

    def test_off_keeps_nothing(self):
        with self.start("--step-time-cache", "off") as server:
            self.assertTrue(server.wait_for("step times: measured in "), server.log)
        self.assertEqual(list(self.cache.iterdir()), [])

    def test_a_folder_of_its_own(self):
        with self.start("--step-time-cache", str(self.cache / "own")) as server:
            self.assertTrue(server.wait_for("step times: kept in "), server.log)
        self.assertEqual(len(list((self.cache / "own").glob("*.json"))), 1)

    def test_a_command_without_rests_measures_once(self):
        arguments = ("generate", "--model", door.BUNDLED, *speculation("ngram"), "--prompt", "A cat",
                     "--max-tokens", "4")
        environment = {"XDG_CACHE_HOME": str(self.cache)}
        first = door.run_program(*arguments, environment=environment)
        self.assertIn("step times: measured in ", first.stderr)
        second = door.run_program(*arguments, environment=environment)
        self.assertIn("step times: read from the cache", second.stderr)
        self.assertEqual(first.stdout.splitlines()[0], second.stdout.splitlines()[0])


class WhoReadsTheLog(unittest.TestCase):
    def test_a_log_that_nobody_reads_any_more_ends_no_server(self):
        """`foretoken serve 2>&1 | head -1`, supervisors that start their logger again"""
        process = subprocess.Popen([door.program(), "serve", door.BUNDLED, "--port", "0",
                                    "--host", "127.0.0.1"], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            door.DoorCase.url = re.search(r" at (\S+),", process.stdout.readline()).group(1)
            process.stdout.close()
            process.stderr.close()
            for _ in range(3):
                self.assertEqual(door.DoorCase.send("GET", "/v1/models").status, 200)
            process.terminate()
            self.assertEqual(process.wait(300), 0)
        finally:
            process.kill()


class APinnedTable(unittest.TestCase):
    def test_it_is_written_and_read_as_before(self):
        with tempfile.TemporaryDirectory() as folder:
            table = os.path.join(folder, "times.json")
            flags = (*speculation("ngram"), "--step-time-table", table)
            with Started(folder, *flags):
                self.assertTrue(os.path.exists(table))
            with Started(folder, *flags) as server:
                self.assertTrue(server.wait_for(f"step times: read from {table}"), server.log)


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

    def test_limits_that_end_every_run_are_named(self):
        for what, most, words in ((resource.RLIMIT_STACK, 64 << 10, "ulimit -s 64"),
                                  (resource.RLIMIT_AS, 200 << 20, "ulimit -v 204800")):
            result = self.run_bare("generate", "Once", "--model", door.BUNDLED, "--max-tokens", "2",
                                   preexec_fn=limited(what, most))
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn(words, result.stderr)

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
