#!/usr/bin/env python3
"""What answers say and how they come: bytes of tokens, names of models, headers, packed bodies."""

import gzip
import http.client
import json
import urllib.parse
import zlib

import door

FACE = "\N{UNICORN FACE}"


class LogProbabilities(door.DoorCase):
    """Tokens that are parts of a character have their real bytes."""

    flags = ("--max-logprobs", "1024")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.ids = cls.send("POST", "/tokenize", {"prompt": FACE}).json["tokens"]

    def forced(self, **more):
        """A body whose output is one of the face's tokens, at each position."""
        return {"max_tokens": 4, "temperature": 0, "allowed_token_ids": self.ids[:1], **more}

    def check(self, token):
        self.assertEqual(bytes(token["bytes"]), FACE.encode()[:len(token["bytes"])])
        self.assertLess(len(token["bytes"]), 4, token)
        self.assertIn("\N{REPLACEMENT CHARACTER}", token["token"])

    def test_the_face_has_several_tokens(self):
        self.assertGreater(len(self.ids), 1)

    def test_chat(self):
        body = {"messages": door.USER, "logprobs": True, "top_logprobs": 20, **self.forced()}
        content = self.post("/v1/chat/completions", body).json["choices"][0]["logprobs"]["content"]
        self.assertEqual(len(content), 4)
        for token in content:
            self.check(token)

    def test_chat_stream(self):
        body = {"messages": door.USER, "logprobs": True, "stream": True, **self.forced()}
        events = self.post("/v1/chat/completions", body).events
        tokens = [token for event in events if event["choices"] and event["choices"][0]["logprobs"]
                  for token in event["choices"][0]["logprobs"]["content"]]
        self.assertEqual(len(tokens), 4)
        for token in tokens:
            self.check(token)

    def test_alternatives_differ_by_their_bytes(self):
        body = {"messages": door.USER, "logprobs": True, "top_logprobs": 1024, **self.forced()}
        token = self.post("/v1/chat/completions", body).json["choices"][0]["logprobs"]["content"][0]
        parts = [bytes(top["bytes"]) for top in token["top_logprobs"]
                 if "\N{REPLACEMENT CHARACTER}" in top["token"]]
        self.assertGreater(len(parts), 2)
        self.assertEqual(len(set(parts)), len(parts))

    def test_response(self):
        body = {"input": "Hi", "include": ["message.output_text.logprobs"], "max_output_tokens": 4,
                "temperature": 0, "allowed_token_ids": self.ids[:1]}
        output = self.post("/v1/responses", body).json["output"]
        tokens = output[0]["content"][0]["logprobs"]
        self.assertEqual(len(tokens), 4)
        for token in tokens:
            self.check(token)

    def test_completion_names_parts_as_openai_does(self):
        body = {"prompt": "A face: " + FACE + " and a cat", "logprobs": 2, "echo": True,
                "max_tokens": 0}
        choice = self.post("/v1/completions", body).json["choices"][0]
        names = choice["logprobs"]["tokens"]
        parts = "".join(name[len("bytes:"):] for name in names if name.startswith("bytes:"))
        self.assertEqual(parts.replace("\\x", "").strip(), FACE.encode().hex())
        # Other tokens stand where their offsets say, those behind the face too.
        for name, offset in zip(names, choice["logprobs"]["text_offset"]):
            if not name.startswith("bytes:"):
                self.assertEqual(choice["text"][offset:offset + len(name)], name)


class Names(door.DoorCase):
    flags = ("--served-model-name", "org/name", "plain")

    def test_a_name_with_a_slash(self):
        for path in ("/v1/models/org%2Fname", "/v1/models/org/name", "/models/org/name"):
            self.assertEqual(self.get(path).json["id"], "org/name")
        self.assertEqual(self.get("/v1/models/plain").json["id"], "plain")
        self.assertIn("does not exist", self.get("/v1/models/org/other", 404).json["error"]["message"])

    def test_fields_of_vllm_and_llama(self):
        model = self.get("/v1/models").json["data"][0]
        self.assertEqual(model["max_model_len"], 2048)
        self.assertTrue(model["permission"][0]["allow_sampling"])
        self.assertEqual(model["meta"]["n_ctx_train"], 2048)
        # agentty 49, llama-swap 999: what agents take for the context.
        self.assertEqual(model["meta"]["n_ctx"], model["max_model_len"])
        self.assertGreater(model["meta"]["n_params"], 1e6)


class Paths(door.DoorCase):
    def test_watchers(self):
        for path in ("/health", "/healthz", "/livez", "/readyz", "/ready", "/v1/health", "/ping"):
            self.get(path)
            answer = self.send("HEAD", path)
            self.assertEqual((answer.status, answer.body), (200, b""), path)
            answer = self.send("OPTIONS", path)
            self.assertEqual(answer.status, 204, path)
            self.assertIn("GET", answer.headers["Allow"])

    def test_without_v1_and_with_slashes(self):
        body = {"messages": door.USER, "max_tokens": 2}
        for path in ("/chat/completions", "/v1/chat/completions/", "//v1/chat/completions",
                     "/v1//chat/completions"):
            self.assertEqual(self.post(path, body).json["object"], "chat.completion")
        for path in ("/models", "/v1/models/", "/models/"):
            self.assertEqual(self.get(path).json["object"], "list")
        self.assertEqual(self.post("/responses", {"input": "Hi", "max_output_tokens": 1}).json[
            "object"], "response")

    def test_what_is_not_there_says_so_in_json(self):
        for method, path in (("GET", "/api/blobs"), ("POST", "/api/generation")):
            answer = self.send(method, path, {} if method == "POST" else None)
            self.assertEqual(answer.status, 404, path)
            self.assertEqual(answer.json["error"]["type"], "NotFoundError", path)

    def test_sleep_says_why_not(self):
        self.assertEqual(self.get("/is_sleeping").json, {"is_sleeping": False})
        self.assertIn("sleep", self.post("/sleep", {}, 501).json["error"]["message"])

    def test_logits_processors_say_what_to_use(self):
        answer = self.post("/v1/chat/completions", {
            "messages": door.USER, "logits_processors": ["module.Class"]}, 400)
        self.assertIn("logit_bias", answer.json["error"]["message"])

    def test_a_reset_forgets_what_is_cached(self):
        body = {"prompt": "Once upon a time there was a cat who lived in a house. " * 4,
                "max_tokens": 1}

        def cached():
            usage = self.post("/v1/completions", body).json["usage"]
            return usage["prompt_tokens_details"]["cached_tokens"]

        cached()
        self.assertGreater(cached(), 0)
        self.post("/reset_prefix_cache", None)
        self.assertEqual(cached(), 0)
        self.assertGreater(cached(), 0)


class Streams(door.DoorCase):
    def test_proxies_are_told_not_to_wait(self):
        for path, body in (("/v1/chat/completions", {"messages": door.USER}),
                           ("/v1/completions", {"prompt": "Hi"}), ("/v1/responses", {"input": "Hi"}),
                           ("/v1/messages", {"messages": door.USER}),
                           ("/completion", {"prompt": "Hi"})):
            limit = "max_output_tokens" if path == "/v1/responses" else "max_tokens"
            answer = self.post(path, {**body, "stream": True, limit: 3})
            self.assertEqual(answer.headers["X-Accel-Buffering"], "no", path)
            self.assertEqual(answer.headers["Cache-Control"], "no-cache", path)
            self.assertIn("text/event-stream", answer.headers["Content-Type"], path)

    def test_timings_where_they_are_asked_for(self):
        body = {"messages": door.USER, "max_tokens": 4, "ignore_eos": True}
        self.assertNotIn("timings", self.post("/v1/chat/completions", body).json)
        body["timings_per_token"] = True
        timings = self.post("/v1/chat/completions", body).json["timings"]
        self.assertEqual(timings["predicted_n"], 4)
        self.assertGreater(timings["predicted_per_second"], 0)
        events = self.post("/v1/chat/completions", {**body, "stream": True}).events
        self.assertEqual([e["timings"]["predicted_n"] for e in events if "timings" in e][-1], 4)


def packed(body, kind):
    data = json.dumps(body).encode()
    if kind == "gzip":
        return gzip.compress(data)
    packer = zlib.compressobj(wbits=-15 if kind == "raw" else 15)
    return packer.compress(data) + packer.flush()


class PackedBodies(door.DoorCase):
    flags = ("--max-body-bytes", "100000")
    body = {"messages": door.USER, "max_tokens": 2}

    def test_gzip_and_deflate(self):
        for kind, name in (("gzip", "gzip"), ("zlib", "deflate"), ("raw", "deflate")):
            answer = self.post("/v1/chat/completions", packed(self.body, kind),
                               headers={"Content-Encoding": name})
            self.assertEqual(answer.json["usage"]["completion_tokens"], 2, kind)

    def test_in_chunks(self):
        data = packed(self.body, "gzip")
        parts = urllib.parse.urlsplit(self.url)
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=300)
        connection.request("POST", "/v1/chat/completions", iter([data[:9], data[9:]]),
                           {"Content-Encoding": "gzip"}, encode_chunked=True)
        self.assertEqual(connection.getresponse().status, 200)
        connection.close()

    def test_a_bomb_is_too_long(self):
        bomb = packed({**self.body, "user": "a" * (64 << 20)}, "gzip")
        self.assertLess(len(bomb), 100000)
        answer = self.post("/v1/chat/completions", bomb, 413, headers={"Content-Encoding": "gzip"})
        self.assertIn("100000", answer.json["error"]["message"])
        long = {**self.body, "user": "a" * 90000}
        self.post("/v1/chat/completions", packed(long, "gzip"),
                  headers={"Content-Encoding": "gzip"})

    def test_broken_ones_and_others_say_so(self):
        data = packed(self.body, "gzip")
        for broken in (data[:-4], b"{}" + data, json.dumps(self.body).encode()):
            self.post("/v1/chat/completions", broken, 400, headers={"Content-Encoding": "gzip"})
        for name in ("zstd", "br"):
            answer = self.post("/v1/chat/completions", data, 415,
                               headers={"Content-Encoding": name})
            self.assertIn("gzip", answer.json["error"]["message"])


if __name__ == "__main__":
    door.main()
