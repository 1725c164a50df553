#!/usr/bin/env python3
"""Spans of requests, read with OpenTelemetry's own messages as a collector reads them."""

import http.server
import os
import threading
import time

import door

if __name__ == "__main__":
    door.use_clients("opentelemetry.proto.collector.trace.v1.trace_service_pb2")

from opentelemetry.proto.collector.trace.v1 import trace_service_pb2  # noqa: E402
from opentelemetry.proto.trace.v1 import trace_pb2  # noqa: E402

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
# What vLLM's spans have.
NAMES = """
    gen_ai.request.id gen_ai.request.n gen_ai.request.max_tokens gen_ai.request.temperature
    gen_ai.request.top_p gen_ai.usage.prompt_tokens gen_ai.usage.completion_tokens
    gen_ai.latency.time_to_first_token gen_ai.latency.e2e gen_ai.latency.time_in_queue
    gen_ai.latency.time_in_model_prefill gen_ai.latency.time_in_model_decode
    gen_ai.latency.time_in_model_inference
""".split()


def value_of(value):
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [value_of(one) for one in value.array_value.values]
    return getattr(value, kind)


def attributes(holder):
    pairs = [(one.key, value_of(one.value)) for one in holder.attributes]
    assert len(dict(pairs)) == len(pairs), "a name stands twice"
    return dict(pairs)


class Collector:
    """Keeps the spans that are posted, with what is said of their program."""

    def __init__(self):
        self.news = threading.Condition()
        self.spans, self.resources, self.headers = [], [], []
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.take(self.path, dict(self.headers), body)
                answer = trace_service_pb2.ExportTraceServiceResponse().SerializeToString()
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, path, headers, body):
        assert path == "/v1/traces", path
        assert headers["Content-Type"] == "application/x-protobuf", headers
        request = trace_service_pb2.ExportTraceServiceRequest.FromString(body)
        with self.news:
            self.headers.append(headers)
            for resource in request.resource_spans:
                self.resources.append(attributes(resource.resource))
                for scope in resource.scope_spans:
                    self.spans.extend(scope.spans)
            self.news.notify_all()

    def wait_for(self, wanted, count=1):
        """The first `count` spans of which `wanted` holds."""
        end = time.monotonic() + 120
        with self.news:
            while True:
                found = [span for span in self.spans if wanted(span)]
                if len(found) >= count:
                    return found[:count]
                if not self.news.wait(end - time.monotonic()):
                    raise AssertionError(f"{len(found)} of {count} spans came")

    def of_request(self, request_id):
        return self.wait_for(
            lambda span: attributes(span).get("gen_ai.request.id") == request_id)[0]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Traces(door.DoorCase):
    collector = None

    @classmethod
    def setUpClass(cls):
        cls.collector = Collector()
        cls.before = dict(os.environ)
        os.environ.update({"OTEL_SERVICE_NAME": "stories", "OTEL_BSP_SCHEDULE_DELAY": "20",
                           "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "x-key=a%20b",
                           "OTEL_EXPORTER_OTLP_TRACES_INSECURE": "true",
                           "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"})
        cls.flags = ("--max-model-len", "512", "--max-num-seqs", "4", "--spec-method", "eagle3",
                     "--spec-model", str(door.ROOT / "models" / "foretoken-7m-eagle3"),
                     "--spec-tokens", "3", "--spec-length-policy", "fixed",
                     "--otlp-traces-endpoint", cls.collector.url + "/v1/traces")
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        os.environ.clear()
        os.environ.update(cls.before)
        cls.collector.close()

    def test_a_span_has_vllms_names_and_what_was_drafted(self):
        answer = self.post("/v1/completions", {"prompt": "One two one two one two one",
                                               "max_tokens": 30, "ignore_eos": True}).json
        span = self.collector.of_request(answer["id"])
        told = attributes(span)
        self.assertEqual([name for name in NAMES if name not in told], [])
        self.assertEqual(span.name, "llm_request")
        self.assertEqual(span.kind, trace_pb2.Span.SPAN_KIND_SERVER)
        self.assertEqual((len(span.trace_id), len(span.span_id), span.parent_span_id), (16, 8, b""))
        self.assertLess(span.start_time_unix_nano, span.end_time_unix_nano)
        self.assertEqual(told["gen_ai.usage.completion_tokens"], 30)
        self.assertEqual(told["gen_ai.usage.prompt_tokens"], answer["usage"]["prompt_tokens"])
        self.assertEqual(told["gen_ai.response.finish_reasons"], ["length"])
        self.assertLessEqual(told["gen_ai.latency.time_to_first_token"], told["gen_ai.latency.e2e"])
        self.assertGreater(told["foretoken.spec_decode.num_draft_tokens"], 0)
        self.assertGreaterEqual(told["foretoken.spec_decode.num_draft_tokens"],
                                told["foretoken.spec_decode.num_accepted_tokens"])
        self.assertEqual(span.status.code, trace_pb2.Status.STATUS_CODE_UNSET)

    def test_the_program_is_named(self):
        answer = self.post("/v1/completions", {"prompt": "Once", "max_tokens": 1}).json
        self.collector.of_request(answer["id"])
        self.assertEqual({one["service.name"] for one in self.collector.resources}, {"stories"})
        self.assertEqual({one["x-key"] for one in self.collector.headers}, {"a b"})

    def test_streams_belong_to_the_clients_trace(self):
        answer = self.post("/v1/chat/completions",
                           {"messages": door.USER, "max_tokens": 8, "stream": True},
                           headers={"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "a=b"})
        span = self.collector.of_request(answer.events[0]["id"])
        self.assertEqual((span.trace_id.hex(), span.parent_span_id.hex()), (TRACE, PARENT))
        self.assertEqual(span.trace_state, "a=b")

    def test_a_trace_that_the_client_does_not_keep_has_no_span(self):
        def ask(flags):
            return self.post("/v1/completions", {"prompt": "Once", "max_tokens": 1},
                             headers={"traceparent": f"00-{TRACE}-{PARENT}-{flags}"}).json["id"]

        left_out = ask("00")
        self.collector.of_request(ask("01"))
        ids = [attributes(span).get("gen_ai.request.id") for span in self.collector.spans]
        self.assertNotIn(left_out, ids)

    def test_each_prompt_and_api_has_a_span(self):
        answer = self.post("/v1/completions", {"prompt": ["One", "Two"], "max_tokens": 1}).json
        for number in (0, 1):
            self.collector.of_request(f"{answer['id']}-{number}")
        answer = self.post("/v1/messages", {"messages": door.USER, "max_tokens": 2}).json
        self.collector.of_request(answer["id"])
        answer = self.post("/v1/responses", {"input": "Hi", "max_output_tokens": 2}).json
        self.collector.of_request(answer["id"])

    def test_a_request_that_ends_too_late_has_a_reason(self):
        answer = self.post("/v1/completions",
                           {"prompt": "Once", "max_tokens": 400, "ignore_eos": True,
                            "timeout_seconds": 0.001, "request_id": "late"}, status=504)
        span = self.collector.of_request("cmpl-late")
        self.assertEqual(span.status.code, trace_pb2.Status.STATUS_CODE_ERROR)
        self.assertIn(span.status.message, answer.json["error"]["message"])

    def test_what_was_sent_is_counted(self):
        answer = self.post("/v1/completions", {"prompt": "Once", "max_tokens": 1}).json
        self.collector.of_request(answer["id"])
        page = self.get("/metrics").text
        self.assertIn('foretoken:trace_spans_total{outcome="sent"}', page)
        self.assertIn('foretoken:trace_spans_total{outcome="dropped"} 0', page)


class Details(door.DoorCase):
    """Parts of requests, and spans that wait when the server ends."""

    def test_they_come_before_the_end(self):
        collector = Collector()
        flags = ("--max-model-len", "128", "--otlp-traces-endpoint", collector.url,
                 "--collect-detailed-traces", "all")
        with door.Server(door.program(), door.BUNDLED, *flags) as server:
            type(self).url = server.url
            self.post("/v1/completions", {"prompt": "Once", "max_tokens": 4})
        spans = {span.name: span for span in collector.spans}
        collector.close()
        self.assertEqual(sorted(spans), ["llm_request", "llm_request.decode", "llm_request.input",
                                         "llm_request.prefill", "llm_request.queue"])
        whole = spans.pop("llm_request")
        for part in spans.values():
            self.assertEqual((part.trace_id, part.parent_span_id), (whole.trace_id, whole.span_id))

    @classmethod
    def setUpClass(cls):
        pass

    @classmethod
    def tearDownClass(cls):
        pass


class Refusals(door.unittest.TestCase):
    def refusal(self, *flags, **variables):
        ended = door.run_program("serve", door.BUNDLED, "--port", "0", *flags,
                                 environment=variables)
        self.assertNotEqual(ended.returncode, 0)
        return ended.stderr

    def test_grpc_is_refused_with_the_port_to_use(self):
        for address in ("grpc://localhost:4317", "http://localhost:4317"):
            self.assertIn("http://localhost:4318/v1/traces",
                          self.refusal("--otlp-traces-endpoint", address))
        self.assertIn("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
                      self.refusal("--otlp-traces-endpoint", "http://localhost:4318",
                                   OTEL_EXPORTER_OTLP_TRACES_PROTOCOL="grpc"))

    def test_details_need_a_collector(self):
        self.assertIn("--otlp-traces-endpoint", self.refusal("--collect-detailed-traces", "all"))


if __name__ == "__main__":
    door.main()
