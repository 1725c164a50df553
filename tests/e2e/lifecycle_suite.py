#!/usr/bin/env python3
"""How `foretoken serve` and `foretoken run-batch` end, and how they go on after they were killed.

lifecycle_suite.py PROGRAM [unittest's arguments]; standard library only.
"""

import collections
import contextlib
import http.client
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

from server_process import Server

PROGRAM = None
PATIENCE = 300  # seconds for what must happen, however busy the machine is
SEED = int(os.environ.get("FORETOKEN_TEST_SEED", "7"))
# Set where the identity tests run on fewer prompts: the batch of requests is smaller there, too.
SHORT = "FORETOKEN_TEST_PROMPTS" in os.environ
# Tokens of the answers beside one that no buffer takes: sockets hold 4 MB, and a token with its likeliest is 28 KB.
NUM_TOKENS = 100 if SHORT else 600
NUM_CHOICES, NUM_HELD_TOKENS, NUM_LIKELIEST = 2, 200, 1000
HELD = ("--max-logprobs", str(NUM_LIKELIEST))  # of the server that gives such an answer


def connect(url, timeout=PATIENCE):
    """A connection to the server at `url`; certificates are not looked at."""
    address = urllib.parse.urlsplit(url)
    if address.scheme == "https":
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return http.client.HTTPSConnection(address.hostname, address.port, timeout=timeout,
                                           context=context)
    return http.client.HTTPConnection(address.hostname, address.port, timeout=timeout)


def completion(number, max_tokens, stream):
    return json.dumps({"prompt": f"Once there were {number} ducks", "max_tokens": max_tokens,
                       "ignore_eos": True, "temperature": 0, "stream": stream,
                       **({"stream_options": {"include_usage": True}} if stream else {})})


class Client(threading.Thread):
    """One completion on a connection of its own; `begun` is set with the answer's first bytes."""

    def __init__(self, url, number, max_tokens, stream):
        super().__init__(daemon=True)
        self.body = completion(number, max_tokens, stream)
        self.stream, self.connection = stream, connect(url)
        self.begun = threading.Event()
        self.status = self.reason = self.error = None
        self.num_tokens = 0
        self.done = False

    def run(self):
        try:
            self.connection.request("POST", "/v1/completions", self.body)
            response = self.connection.getresponse()
            self.status = response.status
            self.begun.set()
            if self.stream:
                self.read_events(response)
            else:
                self.take(json.loads(response.read()))
                self.done = True
        except Exception as error:  # whatever it is, the test tells it
            self.error = error
        finally:
            self.begun.set()
            self.connection.close()

    def read_events(self, response):
        for line in response:
            if line == b"data: [DONE]\n":
                self.done = True
            elif line.startswith(b"data: "):
                self.take(json.loads(line[6:]))

    def take(self, answer):
        for choice in answer.get("choices", []):
            self.reason = choice["finish_reason"] or self.reason
        if answer.get("usage"):
            self.num_tokens = answer["usage"]["completion_tokens"]


def start_load(url, num_clients, max_tokens):
    """Clients in turns with and without a stream, once the streams have begun and all are taken."""
    before = num_requests(url)
    clients = [Client(url, i, max_tokens, stream=i % 2 == 0) for i in range(num_clients)]
    for client in clients:
        client.start()
    for client in clients:
        if client.stream:
            client.begun.wait()
    # Some may have ended already.
    until(lambda: sum(client.done for client in clients) + num_requests(url) - before >= num_clients)
    return clients


def until(holds):
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError("it has not come about")
        time.sleep(0.005)


class HeldStream(threading.Thread):
    """An answer so long that no buffer takes it, hardly read: it has not ended before `read`."""

    def __init__(self, url):
        super().__init__(daemon=True)
        address = urllib.parse.urlsplit(url)
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.settimeout(PATIENCE)
        self.socket.connect((address.hostname, address.port))
        if address.scheme == "https":
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            self.socket = context.wrap_socket(self.socket)
        body = json.dumps({"prompt": "Once", "max_tokens": NUM_HELD_TOKENS, "ignore_eos": True,
                           "n": NUM_CHOICES, "stream": True, "logprobs": NUM_LIKELIEST}).encode()
        self.socket.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
                            b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.pieces = [self.socket.recv(16)]
        self.wanted = threading.Event()
        self.start()

    def run(self):
        try:
            # A reader that takes nothing at all is given up.
            while not self.wanted.wait(1):
                self.pieces.append(self.socket.recv(1024))
            while self.pieces[-1]:
                self.pieces.append(self.socket.recv(1 << 16))
        except OSError:  # the server is gone
            pass
        self.socket.close()

    def read(self):
        """The whole answer, or what there is of it where the server is gone."""
        self.wanted.set()
        self.join()
        return b"".join(self.pieces)


def num_requests(url):
    """The server's requests that wait or run."""
    connection = connect(url)
    connection.request("GET", "/load")
    load = json.loads(connection.getresponse().read())
    connection.close()
    return load["server_load"]


def refused(url):
    """Whether a new request is turned away: no connection, or 503 with a message."""
    connection = connect(url)
    try:
        connection.request("POST", "/v1/completions", completion(0, 1, False))
        response = connection.getresponse()
        return response.status == 503 and bool(json.loads(response.read())["error"]["message"])
    except (ConnectionError, http.client.RemoteDisconnected):
        return True
    finally:
        connection.close()


class Termination(unittest.TestCase):
    def end(self, server, code):
        """Waits for the process; it must end with `code`."""
        found = server.wait(PATIENCE)
        self.assertEqual(found, code, "".join(server.errors[-20:]))

    def drain_under_load(self, *flags):
        """SIGTERM beside running requests, resting connections and half a request."""
        server = Server(PROGRAM, "--shutdown-timeout", "600", *HELD, *flags).__enter__()
        resting = [connect(server.url) for _ in range(4)]
        for connection in resting:
            connection.request("GET", "/health")
            self.assertEqual(connection.getresponse().read(), b"")
        never_used = connect(server.url)
        never_used.connect()
        half = connect(server.url)
        half.connect()
        # Who has answered the first has seen the half behind it.
        half.sock.sendall(b"GET /health HTTP/1.1\r\nHost: h\r\n\r\n"
                          b"POST /v1/completions HTTP/1.1\r\nHost: h\r\nContent-Length: 99\r\n\r\n{")
        self.assertIn(b" 200 ", half.sock.recv(4096))
        held = HeldStream(server.url)
        clients = start_load(server.url, 24, NUM_TOKENS)
        server.process.send_signal(signal.SIGTERM)
        until(lambda: refused(server.url))
        self.assertIsNone(server.process.poll())
        self.assertEqual(held.read().count(b'"finish_reason":"length"'), NUM_CHOICES)
        for client in clients:
            client.join()
            self.assertIsNone(client.error, client.body)
            self.assertEqual((client.status, client.done, client.reason, client.num_tokens),
                             (200, True, "length", NUM_TOKENS))
        self.assertIn(b" 503 ", half.sock.recv(4096))
        self.end(server, 0)
        for connection in [*resting, never_used, half]:
            connection.close()

    def test_running_requests_finish(self):
        self.drain_under_load()

    def test_running_requests_finish_with_speculation(self):
        self.drain_under_load("--spec-method", "eagle3", "--spec-tokens", "3")

    def test_running_requests_finish_over_tls(self):
        if shutil.which("openssl") is None:
            self.skipTest("no openssl to make a certificate with")
        with tempfile.TemporaryDirectory() as folder:
            key, certificate = (f"{folder}/{name}.pem" for name in ("key", "certificate"))
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days",
                            "2", "-subj", "/CN=127.0.0.1", "-keyout", key, "-out", certificate],
                           check=True, capture_output=True)
            self.drain_under_load("--ssl-keyfile", key, "--ssl-certfile", certificate)

    def test_the_open_connection_of_a_finished_answer_gets_503_or_closes(self):
        server = Server(PROGRAM, "--shutdown-timeout", "600", *HELD).__enter__()
        connection = connect(server.url)
        connection.request("GET", "/health")
        connection.getresponse().read()
        held = HeldStream(server.url)
        clients = start_load(server.url, 8, NUM_TOKENS)
        server.process.send_signal(signal.SIGTERM)
        until(lambda: refused(server.url))
        try:
            connection.request("POST", "/v1/completions", completion(1, 1, False))
            response = connection.getresponse()
            self.assertEqual(response.status, 503, response.read())
        except (ConnectionError, http.client.RemoteDisconnected):
            pass
        connection.close()
        held.read()
        for client in clients:
            client.join()
        self.assertEqual([client.reason for client in clients], ["length"] * 8)
        self.end(server, 0)

    def test_requests_beyond_the_deadline_end_with_what_they_have(self):
        server = Server(PROGRAM, "--shutdown-timeout", "0.5").__enter__()
        clients = start_load(server.url, 48, 1900)
        server.process.send_signal(signal.SIGTERM)
        self.end(server, 128 + signal.SIGTERM)
        for client in clients:
            client.join()
            self.assertIsNone(client.error)
            self.assertTrue(client.done)
            self.assertIn(client.reason, ("abort", "length"))
        self.assertIn("abort", [client.reason for client in clients])

    def test_a_reader_that_rests_does_not_keep_the_server(self):
        server = Server(PROGRAM, "--shutdown-timeout", "2").__enter__()
        address = urllib.parse.urlsplit(server.url)
        reader = socket.socket()
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        reader.connect((address.hostname, address.port))
        body = completion(1, 1900, True).encode()
        reader.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n"
                       % len(body) + body)
        reader.recv(16)
        server.process.send_signal(signal.SIGTERM)
        # A byte now and then keeps the writing from being given up: who waited for it would wait for ever.
        ended = threading.Event()

        def nibble():
            with contextlib.suppress(OSError):
                while not ended.wait(0.5) and reader.recv(1):
                    pass
        nibbler = threading.Thread(target=nibble)
        nibbler.start()
        try:
            server.wait(PATIENCE)
        finally:
            ended.set()
            nibbler.join()
            reader.close()

    def test_a_second_signal_ends_it_at_once(self):
        server = Server(PROGRAM, "--shutdown-timeout", "600", *HELD).__enter__()
        held = HeldStream(server.url)
        clients = start_load(server.url, 48, 1900)
        server.process.send_signal(signal.SIGTERM)
        until(lambda: refused(server.url))
        self.assertIsNone(server.process.poll())

        def signalled_once_more():
            server.process.send_signal(signal.SIGTERM)
            return server.process.poll() is not None
        until(signalled_once_more)
        self.assertIn(server.wait(PATIENCE), (-signal.SIGTERM, 128 + signal.SIGTERM))
        held.read()
        for client in clients:
            client.join()

    def test_killed_it_starts_again_on_the_same_port(self):
        server = Server(PROGRAM).__enter__()
        port = urllib.parse.urlsplit(server.url).port
        clients = start_load(server.url, 16, 1900)
        server.process.send_signal(signal.SIGKILL)
        self.assertEqual(server.wait(PATIENCE), -signal.SIGKILL)
        for client in clients:
            client.join()
            self.assertTrue(client.error is not None or not client.done or client.num_tokens)
        with Server(PROGRAM, port=port) as again:
            clients = start_load(again.url, 4, 50)
            for client in clients:
                client.join()
                self.assertEqual((client.status, client.num_tokens), (200, 50))


class BatchResume(unittest.TestCase):
    """A batch that is killed again and again has the results of one that was not."""

    NUM_REQUESTS = 120 if SHORT else 600
    NUM_KILLS = 4 if SHORT else 10
    # A kill comes within this part of a whole run's time, of which starting takes more where it is short.
    KILL_WITHIN = 1 / 2 if SHORT else 1 / 7

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.random = random.Random(SEED)
        with open(self.folder / "in.jsonl", "w", encoding="utf-8") as file:
            for i in range(self.NUM_REQUESTS):
                file.write(json.dumps(self.request(i)) + "\n")

    def request(self, i):
        """Most are right; every 50th is refused, which is a result too."""
        body = {"max_tokens": self.random.randrange(1, 120), "temperature": (i % 2) * 0.8,
                "seed": i, "ignore_eos": True}
        url = "/v1/chat/completions" if i % 3 else "/v1/completions"
        if i % 3:
            body["messages"] = [{"role": "user", "content": f"Tell of {i} \u00fcber-ducks."}]
        else:
            body["prompt"] = f"There were {i} ducks"
        if i % 50 == 49:
            body["top_p"] = 7
        return {"custom_id": f"request-{i}", "method": "POST", "url": url, "body": body}

    def start(self, output):
        return subprocess.Popen(
            [PROGRAM, "run-batch", "-i", str(self.folder / "in.jsonl"), "-o", str(output),
             "--log-level", "error", "--max-num-seqs", "16"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish(self, output):
        process = self.start(output)
        out, err = process.communicate(timeout=1200)
        self.assertEqual(process.returncode, 0, err)
        return out

    def results(self, output):
        """The answer's part that does not depend on the run, by custom id; none is there twice."""
        found = {}
        for line in output.read_text(encoding="utf-8").splitlines():
            value = json.loads(line)
            self.assertNotIn(value["custom_id"], found)
            body = value["response"]["body"]
            found[value["custom_id"]] = (value["response"]["status_code"], body.get("error"),
                                         [choice.get("text") or choice["message"]["content"]
                                          for choice in body.get("choices", [])])
        return found

    def whole_lines(self, output):
        text = output.read_bytes() if output.exists() else b""
        return text[:text.rfind(b"\n") + 1]

    def kill_at_random(self, output, seconds, how):
        """Runs for a random share of `seconds`, is signalled, and has kept what was there."""
        before = self.whole_lines(output)
        process = self.start(output)
        time.sleep(self.random.uniform(0, seconds))
        process.send_signal(how)
        process.communicate(timeout=PATIENCE)
        after = self.whole_lines(output)
        self.assertTrue(after.startswith(before), "a whole line was lost or changed")
        return process.returncode, after.count(b"\n")

    def test_killed_and_resumed(self):
        begin = time.monotonic()
        self.finish(self.folder / "whole.jsonl")
        seconds = time.monotonic() - begin
        whole = self.results(self.folder / "whole.jsonl")
        self.assertEqual(len(whole), self.NUM_REQUESTS)
        self.check_torn_line(self.folder / "whole.jsonl", whole)
        output = self.folder / "out.jsonl"
        counts = []
        for i in range(self.NUM_KILLS + 2):
            how = signal.SIGTERM if i >= self.NUM_KILLS else signal.SIGKILL
            code, count = self.kill_at_random(output, seconds * self.KILL_WITHIN, how)
            counts.append(count)
            self.assertIn(code, (-how, 128 + how, 0))
        self.finish(output)
        resumed = self.results(output)
        differ = [name for name in whole if resumed.get(name) != whole[name]]
        self.assertEqual((len(resumed), differ), (self.NUM_REQUESTS, []))
        statuses = collections.Counter(status for status, _, _ in resumed.values())
        print(f"lines after each of {self.NUM_KILLS} SIGKILL and 2 SIGTERM: {counts}; "
              f"statuses {dict(statuses)}; a whole run takes {seconds:.1f} s", flush=True)

    def check_torn_line(self, output, whole):
        """A line that is there in part is done again, as those that are not there."""
        text = output.read_bytes()
        output.write_bytes(text[:len(text) * 9 // 10])
        self.finish(output)
        self.assertEqual(self.results(output), whole)


def main():
    global PROGRAM
    PROGRAM = sys.argv[1]
    print(f"seed {SEED} (FORETOKEN_TEST_SEED)", flush=True)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)


if __name__ == "__main__":
    main()
