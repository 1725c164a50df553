"""A server for the chat page whose answers a test chooses: Markdown, reasoning, warnings, faults.

It hands out the page of a real server and answers the few routes that the page calls in OpenAI's form,
as `foretoken serve` does: chunks with usage and the origins of tokens. What the page asked is kept.
"""

import dataclasses
import http.server
import json
import re
import threading
import time
import urllib.error
import urllib.request

PASSED_ON = ("Content-Type", "Content-Security-Policy", "ETag", "Cache-Control", "X-Content-Type-Options")
MAX_DRAFTS = 3
ACCEPTED_OF_STEPS = (2, 0, 3, 1, 3)
SPECULATIVE = {"anyOf": [{"properties": {
    "enabled": {"enum": [True, None]},
    "num_speculative_tokens": {"anyOf": [{"type": "integer", "minimum": 0, "maximum": MAX_DRAFTS}, {"type": "null"}]},
    "method": {"anyOf": [{"enum": ["eagle3", "ngram"]}, {"type": "null"}]}}}]}


@dataclasses.dataclass
class Answer:
    text: str
    reasoning: str = ""
    warnings: tuple = ()
    finish: str = "stop"
    delay: float = 0.0       # seconds before the first token
    pause: float = 0.002     # between steps
    status: int = 200        # another one refuses with `text`
    breaks_off: bool = False  # after the text the connection ends


def steps_of(text):
    """The text cut into steps, each a list of (origin, piece): accepted drafts, then one token."""
    pieces = re.findall(r"\s*\S{1,5}\s*?|\s+$", text) or [text]
    yield [("target", pieces.pop(0))]
    step = 0
    while pieces:
        accepted = min(ACCEPTED_OF_STEPS[step % len(ACCEPTED_OF_STEPS)], len(pieces) - 1)
        origins = ["draft"] * accepted + ["target"]
        yield [(origin, pieces.pop(0)) for origin in origins]
        step += 1


def merged(step):
    """One step as `token_origins` tells it: neighbours of one origin together."""
    told = []
    for origin, piece in step:
        if told and told[-1]["origin"] == origin:
            told[-1]["text"] += piece
            told[-1]["num_tokens"] += 1
        else:
            told.append({"origin": origin, "num_tokens": 1, "text": piece})
    return told


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send_body(self, status, body, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def send_json(self, status, value):
        self.send_body(status, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def refuse(self, status, message):
        self.send_json(status, {"error": {"message": message, "type": "e", "param": None, "code": status}})

    def may_pass(self):
        key = self.server.key
        if key is None or self.headers.get("Authorization") == f"Bearer {key}":
            return True
        self.refuse(401, "the API key is missing or wrong")
        return False

    def do_GET(self):
        if self.path == "/v1/models":
            if self.may_pass():
                self.send_json(200, {"data": [{"id": "stand-in", "max_model_len": 4096}]})
        elif self.path == "/openapi.json":
            self.send_json(200, {"components": {"schemas": {"Speculative": SPECULATIVE}}})
        else:
            status, headers, body = self.server.page(self.path)
            self.send_body(status, body, headers)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.may_pass():
            return
        self.server.bodies.append(body)
        answer = self.server.answer_to(body)
        time.sleep(answer.delay)
        if answer.status != 200:
            self.refuse(answer.status, answer.text)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            self.stream(answer)
        except OSError:
            self.server.num_left += 1

    def stream(self, answer):
        usage = {"prompt_tokens": 20, "completion_tokens": 0,
                 "completion_tokens_details": {"accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0}}
        self.chunk({"role": "assistant", "content": ""}, usage, None)
        for field, text in (("reasoning", answer.reasoning), ("content", answer.text)):
            for number, step in enumerate(steps_of(text) if text else []):
                self.count(usage, step, drafted=number > 0)
                self.chunk({field: "".join(piece for _, piece in step)}, usage, merged(step))
                time.sleep(answer.pause)
        if answer.breaks_off:
            return
        self.chunk({}, usage, None, finish=answer.finish)
        self.event({"choices": [], "usage": usage, "warnings": list(answer.warnings)})
        self.wfile.write(b"data: [DONE]\n\n")

    @staticmethod
    def count(usage, step, drafted):
        accepted = len(step) - 1
        usage["completion_tokens"] += len(step)
        details = usage["completion_tokens_details"]
        details["accepted_prediction_tokens"] += accepted
        details["rejected_prediction_tokens"] += MAX_DRAFTS - accepted if drafted else 0

    def chunk(self, delta, usage, origins, finish=None):
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        if origins is not None:
            choice["token_origins"] = origins
        self.event({"choices": [choice], "usage": usage})

    def event(self, value):
        self.wfile.write(f"data: {json.dumps(value)}\n\n".encode())
        self.wfile.flush()


class StandIn(http.server.ThreadingHTTPServer):
    """`answers` maps the text of a question to its Answer; others are answered in a few words."""

    daemon_threads = True

    def __init__(self, page_url, key=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.page_url = page_url
        self.key = key
        self.answers = {}
        self.bodies = []
        self.num_left = 0  # answers whose reader went
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        pass  # browsers leave connections as they like

    def answer_to(self, body):
        question = body["messages"][-1]["content"]
        number = len(self.bodies)
        return self.answers.get(question, Answer(f"Answer number {number} to: {question}"))

    def page(self, path):
        try:
            with urllib.request.urlopen(self.page_url + path) as response:
                headers = {name: response.headers[name] for name in PASSED_ON if response.headers[name]}
                return response.status, headers, response.read()
        except urllib.error.HTTPError as error:
            return error.code, {}, error.read()
