#!/usr/bin/env python3
"""Fields that are unknown, misspelt or of other servers: what becomes of them, and who is told."""

import json

import door

SHORT = {"temperature": 0, "max_tokens": 4}
CHAT = {"messages": door.USER, **SHORT}
TEMPRATURE = "'temprature' is unknown; did you mean 'temperature'?"
# One body of each API that makes text, with the field of its length.
BODIES = {
    "/v1/chat/completions": CHAT,
    "/v1/completions": {"prompt": "Once", **SHORT},
    "/v1/responses": {"input": "Hi", "temperature": 0, "max_output_tokens": 4},
    "/v1/messages": CHAT,
}


class LooseTypes(door.DoorCase):
    """Numbers and flags as text and the like, which vLLM takes, and what it does not take."""

    flags = ("--max-model-len", "512")

    def test_they_mean_what_the_plain_ones_mean(self):
        plain = {"prompt": "Once upon a time", "max_tokens": 8, "temperature": 0.7, "seed": 5,
                 "top_k": 20, "stop_token_ids": [7], "logit_bias": {"5": -100}, "ignore_eos": True}
        loose = {"prompt": "Once upon a time", "max_tokens": "8", "temperature": " 0.7 ", "seed": "5.0",
                 "top_k": 20.0, "stop_token_ids": ["7"], "logit_bias": {"5": "-1000"},
                 "ignore_eos": "yes", "n": True, "stream": "false", "logprobs": None}
        wanted = self.post("/v1/completions", plain).json["choices"]
        self.assertEqual(self.post("/v1/completions", loose).json["choices"], wanted)

    def test_all_apis_take_them(self):
        lengths = {"/v1/responses": "max_output_tokens"}
        for path, body in BODIES.items():
            with self.subTest(path):
                name = lengths.get(path, "max_tokens")
                self.post(path, {**body, name: "4", "temperature": "0", "top_p": "1.0"})
                streamed = self.post(path, {**body, name: "4", "stream": 1})
                self.assertTrue(streamed.events)
                for field, value in (("temperature", "warm"), (name, "many"), (name, "1.5"),
                                     ("stream", "maybe"), ("stream", 2), ("top_p", "")):
                    answer = self.post(path, {**body, field: value}, 400).json["error"]
                    self.assertIn("must be", answer["message"])
        for body in ({"n_predict": "4"}, {"n_predict": "-1", "stop": "a"}, {"n_probs": "2"}):
            self.post("/completion", {"prompt": "Once", "n_predict": 4, **body})
        self.post("/v1/embeddings", {"input": "a", "dimensions": "8"})
        self.post("/v1/rerank", {"query": "a", "documents": ["b", "c"], "top_n": "1",
                                 "return_documents": "true"})

    def test_as_vllm_has_it(self):
        chat = {"messages": door.USER, **SHORT}
        self.post("/v1/chat/completions", {**chat, "stream_options": {}})
        for wrong in ({"stream_options": {"include_usage": True}}, {"stop": [1]}, {"stop": {"a": 1}},
                      {"top_p": 0}):
            self.post("/v1/chat/completions", {**chat, **wrong}, 400)
        error = self.post("/v1/chat/completions", {**chat, "model": "gpt-4"}, 404).json["error"]
        self.assertEqual((error["type"], error["param"], error["code"]),
                         ("NotFoundError", "model", 404))
        for part in ("`gpt-4` does not exist", "'foretoken-7m'", "--served-model-name"):
            self.assertIn(part, error["message"])


class UnknownFields(door.DoorCase):
    flags = ("--max-model-len", "512")

    def check_told(self, answer, *sentences):
        self.assertEqual(answer.json["warnings"], list(sentences), answer.body)
        self.assertEqual(answer.headers["X-Foretoken-Warnings"], " | ".join(sentences))

    def test_whole_answers_tell(self):
        for path, body in BODIES.items():
            with self.subTest(path):
                self.check_told(self.post(path, {**body, "temprature": 0.5}), TEMPRATURE)

    def test_streams_tell_at_their_end(self):
        for path, body in BODIES.items():
            with self.subTest(path):
                answer = self.post(path, {**body, "temprature": 0.5, "stream": True})
                self.assertEqual(answer.headers["X-Foretoken-Warnings"], TEMPRATURE)
                last = answer.events[-1]
                self.assertEqual(last.get("response", last).get("warnings"), [TEMPRATURE], last)

    def test_the_chunk_of_usage_is_the_last(self):
        events = self.post("/v1/chat/completions", {
            **CHAT, "n": 2, "temperature": 1, "x": 1, "stream": True,
            "stream_options": {"include_usage": True}}).events
        self.assertEqual([i for i, e in enumerate(events) if "warnings" in e], [len(events) - 1])

    def test_nothing_to_tell(self):
        for path, body in BODIES.items():
            answer = self.post(path, body)
            self.assertNotIn("warnings", answer.json)
            self.assertIsNone(answer.headers["X-Foretoken-Warnings"])

    def test_batches_embeddings_and_counts(self):
        self.check_told(self.post("/v1/chat/completions/batch", {
            **CHAT, "messages": [door.USER, door.USER], "temprature": 1}), TEMPRATURE)
        self.check_told(self.post("/v1/embeddings", {"input": "a", "temprature": 1}),
                        "'temprature' is unknown and was passed over")
        self.check_told(self.post("/v1/messages/count_tokens", {
            "messages": door.USER, "temprature": 1}), TEMPRATURE)
        self.check_told(self.post("/tokenize", {"prompt": "a", "nonsense": 1}),
                        "'nonsense' is unknown and was passed over")

    def test_objects_in_a_body(self):
        answer = self.post("/v1/chat/completions", {
            **CHAT, "stream": True, "stream_options": {"include_usages": True}})
        self.assertIn("'stream_options': 'include_usages' is unknown; did you mean",
                      answer.headers["X-Foretoken-Warnings"])
        # Drafts of another kind than those that are meant would be no sign of it.
        answer = self.post("/v1/chat/completions", {**CHAT, "speculative": {"methd": "x"}}, 400)
        self.assertIn("did you mean 'method'", answer.json["error"]["message"])

    def test_what_a_client_names_cannot_break_the_header(self):
        name = "a\r\nSet-Cookie: x=\u00e4" + 3000 * "y"
        answer = self.post("/v1/completions", {"prompt": "a", **SHORT, name: 1})
        self.assertIsNone(answer.headers["Set-Cookie"])
        self.assertIn("Set-Cookie", answer.headers["X-Foretoken-Warnings"])
        many = {f"field{i}": 1 for i in range(1000)}
        self.assertLess(len(self.post("/v1/completions", {"prompt": "a", **SHORT, **many})
                            .headers["X-Foretoken-Warnings"]), 2100)

    def test_the_log_has_one_line(self):
        for _ in range(20):
            self.post("/v1/completions", {"prompt": "a", **SHORT, "told_once": 1})
        self.assertEqual(self.log().count("told_once"), 1, self.log())

    def test_wrong_types_of_known_fields_are_refused(self):
        for path, body in BODIES.items():
            for wrong in ({"temperature": "hot"}, {"stream": 3}, {"seed": []}):
                self.post(path, {**body, **wrong}, status=400)

    def test_names_of_models_hold(self):
        for path, body in BODIES.items():
            self.post(path, {**body, "model": "gpt-4o"}, status=404)

    def test_the_document_says_so(self):
        schemas = self.get("/openapi.json").json["components"]["schemas"]
        for name in ("ChatCompletionRequest", "MessagesRequest", "ResponsesRequest"):
            self.assertIs(schemas[name]["additionalProperties"], True, name)

    def test_ends_of_requests_stay_strict(self):
        self.post("/abort_requests", {"request_id": "chatcmpl-1"}, status=400)


class ForeignFields(door.DoorCase):
    """Fields of llama.cpp, Ollama, Together, OpenRouter, LM Studio and OpenAI's first chats."""

    flags = ("--max-model-len", "512", "--enable-auto-tool-choice", "--tool-call-parser", "hermes")

    def text(self, **more):
        """The text of a completion, which must have nothing to tell."""
        answer = self.post("/v1/completions", {
            "prompt": "Once upon a time", "temperature": 0, **more}).json
        self.assertNotIn("warnings", answer)
        return answer["choices"][0]["text"]

    def test_penalties_and_lengths(self):
        self.assertEqual(self.text(max_tokens=32, repeat_penalty=1.3),
                         self.text(max_tokens=32, repetition_penalty=1.3))
        self.assertNotEqual(self.text(max_tokens=64, repeat_penalty=1.8), self.text(max_tokens=64))
        self.assertEqual(self.text(n_predict=9), self.text(max_tokens=9))
        self.assertEqual(self.text(options={"num_predict": 9, "repeat_penalty": 1.3}),
                         self.text(max_tokens=9, repetition_penalty=1.3))

    def test_no_limit(self):
        for path, more in (("/v1/chat/completions", {"messages": door.USER}),
                           ("/v1/completions", {"prompt": "Once"})):
            usage = self.post(path, {**more, "max_tokens": -1, "ignore_eos": True}).json["usage"]
            self.assertEqual(usage["total_tokens"], 512)

    def test_what_changes_nothing_is_taken(self):
        harmless = {"cache_prompt": True, "id_slot": -1, "typical_p": 1.0, "mirostat": 0,
                    "dry_multiplier": 0, "dry_base": 1.75, "dry_allowed_length": 2,
                    "xtc_probability": 0, "xtc_threshold": 0.1, "timings_per_token": False,
                    "seed": -1, "stop": None, "stream_options": None, "top_k": 0,
                    "keep_alive": "5m", "repeat_last_n": 64, "best_of": 1, "samplers": []}
        self.assertEqual(self.text(max_tokens=8, **harmless), self.text(max_tokens=8))
        self.assertEqual(self.text(max_tokens=8, top_k=-1), self.text(max_tokens=8))

    def test_what_is_missing_is_told(self):
        missing = {"typical_p": 0.5, "mirostat": 2, "dry_multiplier": 0.8, "xtc_probability": 0.5,
                   "samplers": ["top_k"], "best_of": 3}
        answer = self.post("/v1/completions", {"prompt": "a", **SHORT, **missing}).json
        for name in missing:
            self.assertTrue(any(f"'{name}'" in one for one in answer["warnings"]), name)

    def test_biases_as_a_list(self):
        first = self.post("/v1/completions", {
            "prompt": "Once", **SHORT, "return_token_ids": True}).json["choices"][0]["token_ids"][0]
        for bias in ([[first, False]], [[first, -100]], {str(first): -100}):
            ids = self.post("/v1/completions", {
                "prompt": "Once", **SHORT, "return_token_ids": True, "logit_bias": bias,
            }).json["choices"][0]["token_ids"]
            self.assertNotIn(first, ids)

    def test_forms_of_the_output(self):
        schema = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"],
                  "additionalProperties": False}
        for form in ({"json_schema": schema}, {"format": schema}):
            self.assertIn('"a"', self.text(max_tokens=40, **form))
        self.assertIn(self.text(max_tokens=40, grammar='root ::= "yes" | "no"'), ("yes", "no"))
        for form in ({"regex": "yes|no"}, {"ebnf": 'root ::= "yes" | "no"'},
                     {"guided_regex": "yes|no", "guided_decoding_backend": "guidance",
                      "structured_outputs": {"regex": "yes|no"}}):
            self.assertIn(self.text(max_tokens=40, **form), ("yes", "no"), form)
        self.post("/v1/completions", {"prompt": "a", "grammar": "root ::= (", **SHORT}, status=400)
        self.post("/v1/completions", {"prompt": "a", "grammar": 'root ::= "a"', **SHORT,
                                      "json_schema": schema}, status=400)

    def test_thinking_by_several_names(self):
        for more in ({"enable_thinking": False}, {"think": False}, {"think": "high"},
                     {"thinking": {"type": "disabled"}}, {"reasoning": {"effort": "low"}},
                     {"reasoning": {"enabled": False, "exclude": True}},
                     {"reasoning_format": "none"}, {"reasoning_effort": "minimal"},
                     {"chat_template_kwargs": {"enable_thinking": False}}):
            self.assertNotIn("warnings", self.post("/v1/chat/completions", {**CHAT, **more}).json)

    def test_functions_before_tools(self):
        function = {"name": "f", "parameters": {"type": "object", "properties": {
            "a": {"type": "boolean"}}, "required": ["a"], "additionalProperties": False}}
        body = {"messages": door.USER, "max_tokens": 60, "temperature": 0, "functions": [function],
                "function_call": {"name": "f"}}
        choice = self.post("/v1/chat/completions", body).json["choices"][0]
        call = choice["message"]["function_call"]
        self.assertEqual(call["name"], "f")
        self.assertIn("a", json.loads(call["arguments"]))
        self.assertNotIn("tool_calls", choice["message"])
        self.assertEqual(choice["finish_reason"], "function_call")
        deltas = [event["choices"][0]["delta"].get("function_call", {}) for event in
                  self.post("/v1/chat/completions", {**body, "stream": True}).events]
        self.assertEqual([delta["name"] for delta in deltas if "name" in delta], ["f"])
        self.assertEqual("".join(delta.get("arguments", "") for delta in deltas),
                         call["arguments"])
        self.post("/v1/chat/completions", {**CHAT, "functions": [function], "messages": [
            *door.USER, {"role": "assistant", "content": None, "function_call": call},
            {"role": "function", "name": "f", "content": "done"}]})

    def test_protocols_share_them(self):
        for path, body in BODIES.items():
            answer = self.post(path, {**body, "repeat_penalty": 1.1, "mirostat": 2}).json
            self.assertEqual(answer["warnings"], ["'mirostat' is not applied here"])

    def test_predictions(self):
        plain = self.post("/v1/chat/completions", CHAT).json["choices"][0]["message"]["content"]
        for content in (plain, [{"type": "text", "text": plain}]):
            answer = self.post("/v1/chat/completions", {
                **CHAT, "prediction": {"type": "content", "content": content}}).json
            self.assertEqual(answer["choices"][0]["message"]["content"], plain)
        self.post("/v1/chat/completions", {**CHAT, "prediction": "x"}, status=400)

    def test_counts_in_a_stream_as_openrouter_has_them(self):
        events = self.post("/v1/chat/completions", {
            **CHAT, "stream": True, "usage": {"include": True}}).events
        self.assertEqual(events[-1]["usage"]["completion_tokens"], 4)


class StrictFields(door.DoorCase):
    flags = ("--max-model-len", "256", "--strict-fields")

    def test_unknown_fields_are_refused(self):
        for path, body in BODIES.items():
            answer = self.post(path, {**body, "temprature": 0.5}, status=400)
            self.assertIn(TEMPRATURE, answer.json["error"]["message"])
            self.post(path, body)

    def test_the_document_says_so(self):
        schemas = self.get("/openapi.json").json["components"]["schemas"]
        self.assertIs(schemas["ChatCompletionRequest"]["additionalProperties"], False)


if __name__ == "__main__":
    door.main()
