#!/usr/bin/env python3
"""What people reported of other servers when they put one in place of another, as the smallest
request each. Names as in reports_door.py; anthropic is anthropics/anthropic-sdk-typescript.
"""

import itertools
import json
import pathlib
import unittest

import door

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
SCHEMA = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 8}}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": SCHEMA}}


def forced(text):
    """Makes the model write `text`."""
    return {"temperature": 0, "max_tokens": 200, "structured_outputs": {"choice": [text]}}


class Chats(door.DoorCase):
    flags = ("--reasoning-parser", "qwen3", "--spec-method", "suffix", "--spec-tokens", "4")

    def events(self, path=CHAT, **more):
        return self.post(path, {"messages": door.USER, "stream": True, **more}).events

    def calls(self, **more):
        """The pieces of calls of a stream, in order; each chunk has one at most."""
        told = [choice["delta"].get("tool_calls", []) for event in self.events(**more)
                for choice in event["choices"]]
        self.assertTrue(all(len(pieces) < 2 for pieces in told))
        return [piece for pieces in told for piece in pieces]

    def test_a_call_opens_without_arguments(self):
        """llama 22722, codex 7517, lmstudio 649, litellm 37792"""
        call = "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"x\"}}</tool_call>"
        for more in (forced(call + call), forced(call + call), {"tool_choice": "required"},
                     {"tool_choice": {"type": "function", "function": {"name": "f"}}}):
            seen = {}
            for piece in self.calls(**{"tools": [TOOL], "temperature": 0, "max_tokens": 200,
                                       **more}):
                function = piece["function"]
                if piece["index"] not in seen:
                    self.assertEqual((function["name"], function["arguments"]), ("f", ""))
                    self.assertEqual(piece["type"], "function")
                    seen[piece["index"]] = ""
                else:
                    self.assertEqual(list(function), ["arguments"])
                    self.assertNotIn("id", piece)
                    self.assertEqual(piece["index"], len(seen) - 1)
                seen[piece["index"]] += function["arguments"]
            self.assertTrue(seen)
            for text in seen.values():
                self.assertIsInstance(json.loads(text), dict)

    def test_kinds_of_text_stand_apart(self):
        """vllm 43933 and 55195: a step of several tokens, or an interval, held all of them"""
        call = "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>"
        for more in ({}, {"include_reasoning": False}):
            told = [set(event["choices"][0]["delta"]) & {"reasoning", "content", "tool_calls"}
                    for event in self.events(tools=[TOOL], stream_interval=100, **more,
                                             **forced(f"<think>So</think>Yes.{call}"))]
            self.assertTrue(all(len(kind) < 2 for kind in told))
            # Tokens that come late may cut a kind in two.
            kinds = [kind for kind, _ in itertools.groupby(min(kind) for kind in told if kind)]
            wanted = ["content", *([] if more else ["reasoning", "content"]), "tool_calls"]
            self.assertEqual(kinds, wanted)

    def test_thoughts_end_with_a_signature(self):
        """anthropic 792, llama 20090"""
        events = self.events(MESSAGES, **forced("<think>So.</think>Yes."))
        kinds = [event.get("delta", event).get("type") for event in events]
        self.assertEqual(kinds[kinds.index("signature_delta") + 1], "content_block_stop")
        self.assertEqual(kinds.count("signature_delta"), 1)

    def test_messages_need_no_length(self):
        """As with llama-server; a null is as good as nothing."""
        for more in ({}, {"max_tokens": None}):
            body = {"messages": door.USER, "stop_sequences": ["."], "temperature": 0, **more}
            self.assertEqual(self.post(MESSAGES, body).json["stop_reason"], "stop_sequence")


    def test_reasoning_that_is_not_wanted(self):
        """vllm 56428"""
        body = {"include_reasoning": False, **forced("<think>secret</think>Yes.")}
        body["max_output_tokens"] = body.pop("max_tokens")
        for stream in (False, True):
            answer = self.post("/v1/responses", {"input": "Hi", **body, "stream": stream})
            self.assertNotIn("secret", answer.text)
            self.assertNotIn("warnings", answer.text)
        usage = self.post("/v1/responses", {"input": "Hi", **body}).json["usage"]
        self.assertGreater(usage["output_tokens_details"]["reasoning_tokens"], 0)

    def test_stop_texts_are_for_the_answer(self):
        """vllm 38499, 52393 and 53066: lm-eval sends some with each request"""
        body = {"messages": door.USER, "stop": ["it is"],
                **forced("<think>So it is.</think>Yes, it is so.")}
        for more in ({}, {"min_tokens": 12}):
            choice = self.post(CHAT, {**body, **more}).json["choices"][0]
            self.assertEqual(choice["message"]["content"], "Yes, ")
            self.assertEqual(choice["message"]["reasoning"], "So it is.")
            self.assertEqual(choice["stop_reason"], "it is")
        body["stop_sequences"] = body.pop("stop")
        blocks = self.post(MESSAGES, body).json["content"]
        self.assertEqual([block.get("thinking", block.get("text")) for block in blocks],
                         ["So it is.", "Yes, "])

    def test_tokens_of_hidden_reasoning(self):
        """vllm 57935"""
        body = {"messages": door.USER, "include_reasoning": False, "logprobs": True,
                "return_token_ids": True, **forced("<think>secret</think>Yes.")}
        for path, more in ((CHAT, {}), (CHAT, {"stream": True}),
                           (CHAT + "/batch", {"messages": [door.USER]})):
            answer = self.post(path, {**body, **more}).text
            self.assertNotIn("secret", answer)
            self.assertNotIn("token_ids\":[", answer)
            self.assertIn("would show the reasoning", answer)

    def test_calls_and_results_as_objects(self):
        """litellm 13420"""
        items = [{"role": "user", "content": "x"},
                 {"type": "reasoning", "id": "r", "summary": [], "content": None,
                  "encrypted_content": None, "status": None},
                 {"type": "function_call", "call_id": "c", "name": "f", "arguments": {"a": "b"}},
                 {"type": "function_call_output", "call_id": "c", "output": {"b": 1}}]
        lengths = []
        for arguments, output in (({"a": "b"}, {"b": 1}), ('{"a":"b"}', '{"b":1}')):
            items[2]["arguments"], items[3]["output"] = arguments, output
            body = {"input": items, "max_output_tokens": 1}
            lengths.append(self.post("/v1/responses", body).json["usage"]["input_tokens"])
        self.assertEqual(*lengths)


class Schemas(door.DoorCase):
    def json(self, schema, **more):
        form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        return self.post(CHAT, {"messages": door.USER, "temperature": 0, "max_tokens": 200,
                                "response_format": form, **more}).json

    def test_patterns_of_names_that_are_properties(self):
        """llguidance 265: with bounds no token was allowed, and the error was a word of a program"""
        for pattern in ("^score$", "^(score|more)$", "^(?:score)$"):
            for closed in ({}, {"additionalProperties": False}):
                schema = {"type": "object", "properties": {"score": {"type": "integer", "minimum": 7}},
                          "required": ["score"], **closed,
                          "patternProperties": {pattern: {"type": "integer", "maximum": 9}}}
                answer = self.json(schema)
                value = json.loads(answer["choices"][0]["message"]["content"])
                self.assertIn(value["score"], (7, 8, 9))
                self.assertNotIn("warnings", answer)

    def test_a_pattern_that_is_none_says_why(self):
        """llama 19051"""
        answer = self.json({"type": "object", "required": ["a"], "properties": {
            "a": {"type": "string", "pattern": "^a(b$"}}}, max_tokens=4)
        self.assertIn("unclosed group", answer["warnings"][0])

    def test_forms_that_nothing_fits(self):
        answer = self.post(CHAT, {"messages": door.USER, "max_tokens": 2, "structured_outputs": {
            "regex": "[^\\s\\S]"}}, 400).json
        self.assertNotIn("NoExtensionBias", answer["error"]["message"])


def begins_with(token):
    """The bundled tokenizer, which puts `token` before a text."""
    tokenizer = json.loads((pathlib.Path(door.BUNDLED) / "tokenizer.json").read_text())
    number = next(one["id"] for one in tokenizer["added_tokens"] if one["content"] == token)
    special = {"SpecialToken": {"id": token, "type_id": 0}}
    texts = [{"Sequence": {"id": name, "type_id": 0}} for name in "AB"]
    tokenizer["post_processor"] = {
        "type": "TemplateProcessing", "single": [special, texts[0]], "pair": [special, *texts],
        "special_tokens": {token: {"id": token, "ids": [number], "tokens": [token]}}}
    return tokenizer


class Begins(door.DoorCase):
    """A tokenizer and a template that both begin with BOS, as Gemma's and Llama's."""

    flags = ("--chat-template", "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}")

    @classmethod
    def setUpClass(cls):
        cls.folder = door.model_copy(tokenizer__json=begins_with("<|endoftext|>"))
        cls.addClassCleanup(cls.folder.cleanup)
        cls.model = cls.folder.name
        super().setUpClass()

    def test_a_rendered_template_is_a_prompt_for_completion(self):
        """As llama-server, whose clients send the one to the other: BOS stands there once"""
        chat = self.post(CHAT, {"messages": door.USER, "max_tokens": 1}).json["usage"]
        prompt = self.post("/apply-template", {"messages": door.USER}).json["prompt"]
        self.assertEqual(prompt, door.USER[0]["content"])
        answer = self.post("/completion", {"prompt": prompt, "n_predict": 1}).json
        self.assertEqual(answer["tokens_evaluated"], chat["prompt_tokens"])


class CommandLine(unittest.TestCase):
    def test_ports(self):
        made = door.run_program("serve", door.BUNDLED, "--port", "99999")
        self.assertIn("65535", made.stderr)

    def test_the_last_of_a_flag_holds(self):
        """As with vllm serve and llama-server, whose images have defaults that users append to"""
        made = door.run_program("generate", "--max-tokens", "1", "--prompt", "a", "--max-tokens",
                                "3", "--max-num-seqs=2", "--max-num-seqs", "4")
        self.assertIn("3 tokens in", made.stderr + made.stdout, made.stderr)
        made = door.run_program("serve", "--block-size", "16", "--block-size", "abc")
        self.assertIn("'abc' is not an integer", made.stderr)

    def test_folders_that_are_no_models(self):
        models = door.ROOT / "models"
        self.assertIn("give one of its models: ", door.run_program("serve", str(models)).stderr)
        head = door.run_program("serve", str(models / "foretoken-7m-eagle3")).stderr
        self.assertIn("give the head to --spec-model", head)


if __name__ == "__main__":
    door.main()
