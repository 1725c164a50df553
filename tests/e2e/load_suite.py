#!/usr/bin/env python3
"""Load and hostility against a running OpenAI-compatible server; one line a check.

    tests/e2e/load_suite.py --base-url http://127.0.0.1:8000 --pid 4711

Standard library only. Exits with 1 when a check fails.
"""

import argparse
import asyncio
import json
import resource
import sys
import time
import urllib.parse


class Answer:
    """Status, headers (names in lower case) and body; status 0 where the connection ended first."""

    def __init__(self, status=0, headers=None, body=b""):
        self.status, self.headers, self.body = status, headers or {}, body

    def json(self):
        return json.loads(self.body)


class Server:
    """What the checks need to know of the server under test."""

    def __init__(self, args):
        url = urllib.parse.urlsplit(args.base_url)
        self.host, self.port = url.hostname, url.port or 80
        self.prefix = url.path.rstrip("/")
        self.pid, self.model, self.timeout = args.pid, args.model, args.timeout
        self.auth = f"Authorization: Bearer {args.api_key}\r\n" if args.api_key else ""

    async def open(self):
        return await asyncio.open_connection(self.host, self.port, limit=1 << 22)

    def head(self, method, path, extra=""):
        return (f"{method} {self.prefix}{path} HTTP/1.1\r\nHost: {self.host}\r\n{self.auth}{extra}"
                "\r\n").encode()

    def post(self, path, body, extra=""):
        return self.head("POST", path, f"Content-Type: application/json\r\n"
                         f"Content-Length: {len(body)}\r\n{extra}") + body

    async def ask(self, data):
        """One request on a connection of its own."""
        reader, writer = await self.open()
        try:
            return await asyncio.wait_for(exchange(reader, writer, data), self.timeout)
        finally:
            writer.close()

    async def get(self, path):
        return await self.ask(self.head("GET", path, "Connection: close\r\n"))

    def chat(self, prompt, max_tokens, stream=True):
        return json.dumps({
            "model": self.model, "messages": [{"role": "user", "content": prompt}],
            "max_tokens": max_tokens, "temperature": 0, "stream": stream, "ignore_eos": True,
        }).encode()

    def process(self):
        """Resident MiB and open files of the server's process."""
        import os
        with open(f"/proc/{self.pid}/status", encoding="ascii") as status:
            kib = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
        return kib / 1024, len(os.listdir(f"/proc/{self.pid}/fd"))

    async def gauge(self, name, label=""):
        """The sum of a metric over its labels, or None where the server does not have it."""
        values = [float(line.rsplit(" ", 1)[1])
                  for line in (await self.get("/metrics")).body.decode().splitlines()
                  if line.split("{")[0].split(" ")[0] == name and label in line]
        return sum(values) if values else None

    async def aborted(self):
        """Requests that ended as their clients went."""
        return await self.gauge("vllm:request_success_total", 'finished_reason="abort"')


async def read_head(reader):
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.strip().lower(): value.strip()
               for name, _, value in (line.partition(":") for line in head[1:] if line)}
    return int(head[0].split(" ")[1]), headers


async def read_chunks(reader):
    """The chunks of a chunked body, until its end."""
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        yield (await reader.readexactly(size + 2))[:-2]
    await reader.readuntil(b"\r\n")


async def exchange(reader, writer, data):
    try:
        writer.write(data)
        send = asyncio.ensure_future(writer.drain())
        status, headers = await read_head(reader)
        body = b""
        if headers.get("transfer-encoding") == "chunked":
            async for chunk in read_chunks(reader):
                body += chunk
        elif "content-length" in headers:
            body = await reader.readexactly(int(headers["content-length"]))
        send.cancel()
        return Answer(status, headers, body)
    except (ConnectionError, asyncio.IncompleteReadError):
        return Answer()


async def stream_text(server, body, after_event=None):
    """The text of a streamed chat; raises where it is not whole and in order."""
    reader, writer = await server.open()
    try:
        writer.write(server.post("/v1/chat/completions", body))
        status, headers = await read_head(reader)
        if status != 200:
            raise RuntimeError(f"status {status}")
        buffer, text, done = b"", "", False
        async for chunk in read_chunks(reader):
            buffer += chunk
            while b"\n\n" in buffer:
                event, buffer = buffer.split(b"\n\n", 1)
                if not event.startswith(b"data: "):
                    continue
                if done:
                    raise RuntimeError("an event after [DONE]")
                if event == b"data: [DONE]":
                    done = True
                    continue
                for choice in json.loads(event[6:]).get("choices", []):
                    text += choice["delta"].get("content") or ""
                if after_event and after_event():
                    return text
        if not done:
            raise RuntimeError("no [DONE]")
        return text
    finally:
        writer.close()


async def check_streams(server, args):
    """Concurrent streams of one greedy prompt, all equal to the text that comes alone."""
    body = server.chat("Count from one to twenty.", args.tokens)
    alone = await stream_text(server, body)
    begin = time.monotonic()
    texts = await asyncio.gather(*(asyncio.wait_for(stream_text(server, body), args.timeout)
                                   for _ in range(args.streams)), return_exceptions=True)
    errors = [text for text in texts if isinstance(text, BaseException)]
    differ = sum(1 for text in texts if not isinstance(text, BaseException) and text != alone)
    detail = f"{args.streams} streams, {len(errors)} errors, {differ} texts differ, " \
             f"{time.monotonic() - begin:.1f} s"
    return not errors and not differ and bool(alone), detail + first_of(errors)


async def check_vanish(server, args):
    """Clients that go in the middle of their stream; everything they held is free soon after."""
    body = server.chat("Tell a very long story.", args.vanish_tokens)

    async def vanish():
        events = 0

        def enough():
            nonlocal events
            events += 1
            return events >= 2
        await asyncio.wait_for(stream_text(server, body, enough), args.timeout)

    before = await server.aborted()
    results = await asyncio.gather(*(vanish() for _ in range(args.vanish)), return_exceptions=True)
    begin = time.monotonic()
    errors = [result for result in results if isinstance(result, BaseException)]
    names = ("vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc")
    left = {}
    while time.monotonic() - begin < max(30, args.free_within):
        left = {name: await server.gauge(name) for name in names}
        if not any(left.values()):
            break
        await asyncio.sleep(0.05)
    elapsed = time.monotonic() - begin
    known = [name for name in names if left.get(name) is not None]
    # Where it is counted, it was not the end of the text that freed them.
    aborted = None if before is None else await server.aborted() - before
    return (not errors and not any(left.values()) and bool(known) and elapsed <= args.free_within
            and aborted != 0,
            f"{args.vanish} clients vanish, {len(errors)} errors, {aborted} aborted, {elapsed:.2f} s until "
            f"{', '.join(known) or 'NO METRIC'} are 0" + first_of(errors))


async def check_slow_reader(server, args):
    """A reader of one byte a second beside ordinary requests."""
    body = server.chat("Say hello.", args.tokens)

    async def times(count):
        elapsed = []
        for _ in range(count):
            begin = time.monotonic()
            await asyncio.wait_for(stream_text(server, body), args.timeout)
            elapsed.append(time.monotonic() - begin)
        return sorted(elapsed)[count // 2]

    alone = await times(9)
    readers = [await server.open() for _ in range(args.slow)]
    long_body = server.chat("Tell a very long story.", args.vanish_tokens)
    for _, writer in readers:
        writer.write(server.post("/v1/chat/completions", long_body))
        writer.transport.pause_reading()
    trickle = asyncio.ensure_future(read_slowly(server, long_body))
    try:
        # Until the slow ones' own work is over, they take their share of the model's time.
        for _ in range(int(args.timeout * 10)):
            if not await server.gauge("vllm:num_requests_running"):
                break
            await asyncio.sleep(0.1)
        beside = await times(9)
    finally:
        trickle.cancel()
        for _, writer in readers:
            writer.close()
    return (beside <= alone * args.slower_by + 0.05,
            f"{args.slow} readers that rest and one of a byte a second: a short request takes "
            f"{beside * 1000:.0f} ms, alone {alone * 1000:.0f} ms (median of 9)")


async def read_slowly(server, body):
    reader, writer = await asyncio.open_connection(server.host, server.port, limit=1)
    try:
        writer.write(server.post("/v1/chat/completions", body))
        while await reader.read(1):
            await asyncio.sleep(1)
    finally:
        writer.close()


async def check_connections(server, args):
    """Short connections, a few hundred at a time."""
    gate = asyncio.Semaphore(args.parallel)

    async def one():
        async with gate:
            try:
                return (await server.get("/health")).status
            except OSError as error:
                return error
    begin = time.monotonic()
    results = await asyncio.gather(*(one() for _ in range(args.connections)))
    bad = [result for result in results if result != 200]
    elapsed = time.monotonic() - begin
    return not bad, f"{args.connections} connections, {len(bad)} without 200, {elapsed:.1f} s, " \
        f"{args.connections / elapsed:.0f} a second" + first_of(bad)


def hostile_requests(server):
    """Name, bytes, statuses that are right."""
    path, bad = "/v1/chat/completions", (400, 413, 415, 422)
    good = json.loads(server.chat("hi", 1, stream=False))

    def wrong(**fields):
        return server.post(path, json.dumps({**good, **fields}).encode())

    yield "body of 65 MB", server.post(path, b'{"a": "' + b"x" * (65 << 20) + b'"}'), (400, 413)
    yield "body of 60 MB of nothing", server.post(path, b" " * (60 << 20)), (400, 413)
    yield "10,000 headers", server.head("GET", "/health", "".join(
        f"X-{i}: y\r\n" for i in range(10000))), (431,)
    yield "header of 8 MB", server.head("GET", "/health", f"X: {'y' * (8 << 20)}\r\n"), (431,)
    yield "target of 8 MB", server.head("GET", "/" + "a" * (8 << 20)), (414, 431)
    yield "bad UTF-8 in the body", server.post(path, b'{"model": "\xff\xfe"}'), bad
    yield "bad UTF-8 in the path", b"GET /%ff%fe HTTP/1.1\r\nHost: h\r\n\r\n", (400,)
    yield "raw bytes in the path", b"GET /\xff\xfe HTTP/1.1\r\nHost: h\r\n\r\n", (400,)
    yield "100,000 nested arrays", server.post(path, b"[" * 100000), bad
    yield "100,000 nested objects", server.post(path, b'{"a":' * 100000), bad
    yield "no JSON", server.post(path, b"hello"), bad
    yield "empty body", server.post(path, b""), bad
    yield "null", server.post(path, b"null"), bad
    yield "an array", server.post(path, b"[]"), bad
    yield "lone surrogate", server.post(path, b'{"model": "\\ud800", "messages": []}'), (400, 404, 422)
    for name, fields in {
        "messages: string": {"messages": "hi"}, "messages: numbers": {"messages": [1, 2]},
        "messages: empty": {"messages": []}, "temperature: string": {"temperature": "hot"},
        "temperature: -1": {"temperature": -1}, "max_tokens: -5": {"max_tokens": -5},
        "max_tokens: 1e300": {"max_tokens": 1e300}, "max_tokens: array": {"max_tokens": [1]},
        "n: 0": {"n": 0}, "stop: object": {"stop": {"a": 1}}, "stream: string": {"stream": "perhaps"},
        "logit_bias: array": {"logit_bias": [1]}, "seed: 2^80": {"seed": 1 << 80},
    }.items():
        yield name, wrong(**fields), bad
    yield "two Content-Length", b"POST /health HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n" \
        b"Content-Length: 2\r\n\r\nab", (400,)
    yield "Content-Length and chunked", b"POST /health HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n" \
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", (400,)
    yield "HTTP/2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (400, 505)
    yield "TLS on a plain port", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 200, (400,)
    yield "gzip body", server.post(path, b"\x1f\x8b", "Content-Encoding: gzip\r\n"), (400, 415)
    yield "unknown path", server.head("GET", "/nowhere"), (404,)
    yield "unknown method", server.head("BREW", "/health"), (405, 501)


async def check_hostile(server, args):
    del args
    wrong, count, slowest = [], 0, (0.0, "")
    for name, data, right in hostile_requests(server):
        count += 1
        begin = time.monotonic()
        try:
            status = (await server.ask(data)).status
        except (OSError, asyncio.TimeoutError) as error:
            status = repr(error)
        slowest = max(slowest, (time.monotonic() - begin, name))
        if status not in right:
            wrong.append(f"{name}: {status}")
        if (await server.get("/health")).status != 200:
            wrong.append(f"/health after {name}")
    return not wrong, f"{count} hostile requests, {len(wrong)} answered wrongly, slowest " \
        f"{slowest[0]:.1f} s ({slowest[1]})" + first_of(wrong)


async def check_half_requests(server, args):
    """Connections that never finish their request, beside ordinary ones."""
    halves = [await server.open() for _ in range(args.halves)]
    for i, (_, writer) in enumerate(halves):
        writer.write(server.head("GET", "/health")[:-2] if i % 2 else
                     server.post("/v1/chat/completions", b"x" * 100)[:-50])
    begin = time.monotonic()
    statuses = [(await server.get("/health")).status for _ in range(50)]
    elapsed = time.monotonic() - begin
    for _, writer in halves:
        writer.close()
    return statuses == [200] * 50, f"{args.halves} unfinished requests: 50 others took " \
        f"{elapsed * 1000:.0f} ms"


async def check_process(server, before):
    """After all that: the process lives, its files are closed, its memory has not run away."""
    for _ in range(600):
        memory, files = server.process()
        if files <= before[1] + 8:
            break
        await asyncio.sleep(0.1)
    good = files <= before[1] + 8 and (await server.get("/health")).status == 200
    return good, f"open files {before[1]} before, {files} after; resident {before[0]:.0f} MiB " \
        f"before, {memory:.0f} after"


def first_of(problems):
    return f"; first: {problems[0]!r}" if problems else ""


CHECKS = {
    "streams": check_streams, "vanish": check_vanish, "slow_reader": check_slow_reader,
    "connections": check_connections, "hostile": check_hostile, "halves": check_half_requests,
}


async def run(args):
    server = Server(args)
    if server.model is None:
        server.model = (await server.get("/v1/models")).json()["data"][0]["id"]
    before = server.process() if server.pid else None
    checks = [(name, CHECKS[name](server, args)) for name in args.only or CHECKS]
    if before:
        checks.append(("process", check_process(server, before)))
    num_failed = 0
    for name, check in checks:
        try:
            good, detail = await check
        except Exception as error:  # a check that cannot run has failed; the others still count
            good, detail = False, repr(error)
        num_failed += not good
        print(f"{'ok  ' if good else 'FAIL'} {name}: {detail}", flush=True)
    return 1 if num_failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base-url", default="http://127.0.0.1:8000")
    parser.add_argument("--pid", type=int, help="of the server, to look at its files and memory")
    parser.add_argument("--api-key")
    parser.add_argument("--model", help="default: the first of /v1/models")
    parser.add_argument("--only", action="append", choices=CHECKS, help="may be repeated")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for one request")
    for name, default, text in (
            ("streams", 1000, "concurrent streams"), ("tokens", 16, "tokens of each"),
            ("vanish", 500, "clients that vanish"), ("vanish-tokens", 400, "tokens that they want"),
            ("slow", 4, "readers that rest"), ("connections", 10000, "short connections"),
            ("parallel", 200, "of them at a time"), ("halves", 200, "unfinished requests")):
        parser.add_argument(f"--{name}", type=int, default=default, help=text)
    parser.add_argument("--free-within", type=float, default=1.0,
                        help="seconds until the vanished clients' places are free")
    parser.add_argument("--slower-by", type=float, default=1.5,
                        help="factor that resting readers may cost a short request")
    args = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(args.streams, args.vanish) + 256
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))
    return asyncio.run(run(args))


if __name__ == "__main__":
    sys.exit(main())
