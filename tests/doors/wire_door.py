#!/usr/bin/env python3
"""What clients and proxies do with a connection: sides that are closed early, line ends, TLS files."""

import json
import pathlib
import re
import shutil
import socket
import ssl
import struct
import subprocess
import tempfile
import time
import unittest
import urllib.parse

import door


def request_bytes(body, path="/v1/completions", version="1.1", more=""):
    data = json.dumps(body).encode()
    head = (f"POST {path} HTTP/{version}\r\nHost: t\r\nContent-Type: application/json\r\n{more}"
            f"Content-Length: {len(data)}\r\n\r\n")
    return head.encode() + data


def completion(num_tokens, stream=False):
    return {"prompt": "Once upon a time", "max_tokens": num_tokens, "ignore_eos": True,
            "temperature": 0, "stream": stream}


def make_certificate(folder, name):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                    "-subj", f"/CN={name}", "-keyout", f"{folder}/key.pem",
                    "-out", f"{folder}/certificate.pem"], check=True, capture_output=True)


def read_all(connection):
    data = b""
    while piece := connection.recv(65536):
        data += piece
    return data


class WireCase(door.DoorCase):
    """Cases that talk over a socket of their own."""

    def connect(self):
        parts = urllib.parse.urlsplit(self.url)
        connection = socket.create_connection((parts.hostname, parts.port), timeout=120)
        self.addCleanup(connection.close)
        return connection

    def answer_of_half(self, data):
        """What comes back where the client closes its side right behind its request."""
        connection = self.connect()
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        return read_all(connection)

    def num_running(self):
        text = self.get("/metrics").text
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
                   if line.startswith(("vllm:num_requests_running", "vllm:num_requests_waiting{")))

    def num_aborted(self):
        line, = re.findall(r'^vllm:request_success_total\{.*finished_reason="abort".*\} (\S+)$',
                           self.get("/metrics").text, re.M)
        return float(line)

    def until_running(self, number, seconds=300):
        end = time.monotonic() + seconds
        while self.num_running() != number:
            self.assertLess(time.monotonic(), end, f"not {number} requests running")
            time.sleep(0.05)


class HalfClosed(WireCase):
    def test_whole_answers_and_streams(self):
        wanted = self.post("/v1/completions", completion(64)).json["choices"][0]["text"]
        for version in ("1.1", "1.0"):
            data = self.answer_of_half(request_bytes(completion(64), version=version))
            # Interim answers come before the one that is meant.
            while data.startswith(b"HTTP/1.1 100 "):
                data = data.split(b"\r\n\r\n", 1)[1]
            head, body = data.split(b"\r\n\r\n", 1)
            self.assertIn(b" 200 ", head.split(b"\r\n")[0])
            self.assertEqual(json.loads(body)["choices"][0]["text"], wanted)
            streamed = self.answer_of_half(request_bytes(completion(64, True), version=version))
            self.assertIn(b"data: [DONE]", streamed)

    def test_pipelined_requests(self):
        data = self.answer_of_half(request_bytes(completion(4)) + request_bytes(completion(5)) +
                                   b"GET /health HTTP/1.1\r\nHost: t\r\n\r\n")
        self.assertEqual(data.count(b"HTTP/1.1 200 "), 3, data)

    def test_whoever_goes_ends_the_work(self):
        for stream in (False, True):
            for reset in (False, True):
                connection = self.connect()
                connection.sendall(request_bytes(completion(1900, stream)))
                self.until_running(1)
                if reset:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                          struct.pack("ii", 1, 0))
                aborted = self.num_aborted()
                connection.close()
                self.until_running(0)
                end = time.monotonic() + 300
                while self.num_aborted() == aborted:
                    self.assertLess(time.monotonic(), end, "it was written to its end")

    def test_a_request_cut_in_the_middle_has_no_effect(self):
        for data in (b"GET /health HT", b"GET /health HTTP/1.1\r\nHost: t\r\n",
                     request_bytes(completion(4))[:-3]):
            self.assertNotIn(b" 200 ", self.answer_of_half(data))
        self.get("/health")


class LineEnds(WireCase):
    def test_bare_line_feeds_are_answered_at_once(self):
        whole = "POST /v1/completions HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n"
        for text in ("GET /health HTTP/1.1\nHost: t\n\n", "GET /health HTTP/1.1\r\nHost: t\n\n",
                     "GET /health HTTP/1.1\r\nHost: t\r\nA: b\n\r\n", whole + "2\n{}\n0\n\n"):
            connection = self.connect()
            connection.sendall(text.encode())
            # One that was waited with would be answered with 408 when its time is up.
            self.assertTrue(connection.recv(4096).startswith(b"HTTP/1.1 400 "), text)


class OverTls(WireCase):
    @classmethod
    def setUpClass(cls):
        if shutil.which("openssl") is None:
            raise unittest.SkipTest("no openssl to make a certificate with")
        cls.folder = tempfile.TemporaryDirectory()
        make_certificate(cls.folder.name, "first")
        cls.flags = ("--ssl-keyfile", f"{cls.folder.name}/key.pem", "--ssl-certfile",
                     f"{cls.folder.name}/certificate.pem", "--enable-ssl-refresh",
                     "--log-level", "info")
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    def connect_tls(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connection = context.wrap_socket(self.connect(), suppress_ragged_eofs=False)
        self.addCleanup(connection.close)
        return connection

    def ask(self, connection, path="/health"):
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n".encode())
        return read_all(connection)

    def num_running(self):
        text = self.ask(self.connect_tls(), "/metrics").decode()
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
                   if line.startswith(("vllm:num_requests_running", "vllm:num_requests_waiting{")))

    def test_half_closed_below_tls(self):
        connection = self.connect_tls()
        connection.sendall(request_bytes(completion(64)))
        # The socket's side alone, as proxies do that know nothing of TLS.
        socket.socket.shutdown(connection, socket.SHUT_WR)
        self.assertIn(b"HTTP/1.1 200 ", read_all(connection))

    def test_half_closed_with_a_farewell(self):
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        tls, connection = context.wrap_bio(incoming, outgoing), self.connect()

        def exchange(step):
            """Runs `step` until it needs no more bytes; what it returned."""
            while True:
                try:
                    result = step()
                    connection.sendall(outgoing.read())
                    return result
                except ssl.SSLWantReadError:
                    connection.sendall(outgoing.read())
                    piece = connection.recv(65536)
                    incoming.write(piece) if piece else incoming.write_eof()

        exchange(tls.do_handshake)
        prompt = "Once upon a time there was a cat. " * 60
        tls.write(request_bytes({**completion(64), "prompt": prompt, "echo": True}))
        try:
            tls.unwrap()  # the farewell; the other side's comes after its answer
        except ssl.SSLWantReadError:
            pass
        connection.sendall(outgoing.read())
        encrypted = read_all(connection)
        # Not readable behind the farewell with Python's module; an answer that repeats its prompt is so long.
        self.assertGreater(len(encrypted), len(prompt))

    def test_whoever_goes_ends_the_work(self):
        connection = self.connect_tls()
        connection.sendall(request_bytes(completion(1900)))
        self.until_running(1)
        connection.close()
        self.until_running(0)

    def subject(self):
        connection = self.connect_tls()
        return connection.getpeercert(binary_form=True)

    def until_subject_is(self, wanted):
        end = time.monotonic() + 300
        while self.subject() != wanted:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.1)

    def test_renewed_certificates_are_used(self):
        folder = pathlib.Path(self.folder.name)
        old = self.subject()
        open_before = self.connect_tls()
        with tempfile.TemporaryDirectory() as other:
            make_certificate(other, "second")
            wanted = ssl.PEM_cert_to_DER_cert(
                pathlib.Path(other, "certificate.pem").read_text(encoding="ascii"))
            key = pathlib.Path(other, "key.pem").read_bytes()
            # The certificate alone does not fit the key: the old pair goes on.
            shutil.copy(f"{other}/certificate.pem", folder / "certificate.pem")
            end = time.monotonic() + 300
            while "the certificates stay as they were" not in self.log():
                self.assertLess(time.monotonic(), end)
                time.sleep(0.1)
            self.assertEqual(self.subject(), old)
            (folder / "key.pem").write_bytes(key)
            self.until_subject_is(wanted)
        self.assertIn(b" 200 ", self.ask(open_before))


if __name__ == "__main__":
    door.main()
