#!/usr/bin/env python3
"""Strict tools where the choice is the model's: a call that it begins follows the schema.

A copy of the bundled model whose last token is the marker of a format, towards which the requests
lean: the model calls by itself, and knows nothing of what a call looks like.
"""

import json
import os

import door

WHOLE = os.environ.get("FORETOKEN_TEST_WHOLE_DOORS") == "1"
NUM_TOKENS = 160  # a call and what the model writes behind it, which does not end by itself
SCHEMA = {"type": "object", "properties": {
    "unit": {"type": "string", "enum": ["celsius", "kelvin"]},
    "days": {"type": "integer", "minimum": 1, "maximum": 9},
    "at": {"$ref": "#/$defs/Place"}},
    "required": ["unit", "days", "at"], "additionalProperties": False,
    "$defs": {"Place": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 9},
                        "minItems": 2, "maxItems": 2}}}

def tool(name="get_weather", schema=None, **more):
    return {"name": name, "description": "The weather.", "parameters": schema or SCHEMA, **more}

def functions(*tools):
    return [{"type": "function", "function": one} for one in tools]

def marked_model(marker, special):
    """The bundled model with `marker` as its last token; the folder and the token's id."""
    with open(f"{door.BUNDLED}/tokenizer.json", encoding="utf-8") as file:
        tokenizer = json.load(file)
    vocabulary = tokenizer["model"]["vocab"]
    last = max(vocabulary, key=vocabulary.get)
    number = vocabulary.pop(last)
    vocabulary[marker] = number
    tokenizer["model"]["merges"].pop()  # whose product it was
    tokenizer["added_tokens"].append({
        "id": number, "content": marker, "single_word": False, "lstrip": False, "rstrip": False,
        "normalized": False, "special": special})
    return door.model_copy(tokenizer__json=tokenizer, **door.one_layer()), number

class MarkedCase(door.DoorCase):
    marker = "<tool_call>"
    parser = "hermes"
    special = False
    more_flags = ()

    @classmethod
    def setUpClass(cls):
        cls.folder, cls.number = marked_model(cls.marker, cls.special)
        cls.model = cls.folder.name
        cls.flags = ("--tool-call-parser", cls.parser, "--spec-method", "ngram", "--spec-tokens",
                     "3", "--max-model-len", "1024", *cls.more_flags)
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    def body(self, *tools, **more):
        return {"messages": door.USER, "tools": functions(*tools), "temperature": 0,
                "max_tokens": NUM_TOKENS, "logit_bias": {str(self.number): 100},
                "parallel_tool_calls": False, **more}

    def call(self, body):
        message = self.post("/v1/chat/completions", body).json["choices"][0]["message"]
        self.assertTrue(message.get("tool_calls"), message)
        call = message["tool_calls"][0]["function"]
        return call["name"], json.loads(call["arguments"])

    def check(self, arguments):
        self.assertEqual(set(arguments), set(SCHEMA["properties"]))
        self.assertIn(arguments["unit"], ("celsius", "kelvin"))
        self.assertIn(arguments["days"], range(1, 10))
        self.assertEqual(len(arguments["at"]), 2)

class Strict:
    def test_calls_follow_the_schema(self):
        for more in ({}, {"tool_choice": "auto", "temperature": 1, "seed": 3}):
            name, arguments = self.call(self.body(tool(strict=True), **more))
            self.assertEqual(name, "get_weather")
            self.check(arguments)

    def test_drafts_change_nothing(self):
        for more in ({"temperature": 1, "seed": 5}, {}) if WHOLE else ({"temperature": 1, "seed": 5},):
            body = self.body(tool(strict=True), **more)
            both = [self.call({**body, "speculative": {"enabled": on}}) for on in (True, False)]
            self.assertEqual(both[0], both[1])

    def test_several_tools(self):
        name, arguments = self.call(self.body(tool("loose"), tool(strict=True)))
        self.assertIn(name, ("loose", "get_weather"))
        if name == "get_weather":
            self.check(arguments)

    def test_streams(self):
        arguments = ""
        for event in self.post("/v1/chat/completions",
                               self.body(tool(strict=True), stream=True)).events:
            for call in event["choices"][0]["delta"].get("tool_calls", ()):
                arguments += call["function"].get("arguments") or ""
        self.check(json.loads(arguments))

    def test_text_stays_free(self):
        body = self.body(tool(strict=True), max_tokens=24)
        del body["logit_bias"]
        message = self.post("/v1/chat/completions", body).json["choices"][0]["message"]
        self.assertTrue(message["content"])
        self.assertFalse(message.get("tool_calls"))

    def test_beside_a_form_of_the_answer(self):
        """What AI SDK, LangChain and pydantic-ai send: an answer in a form, or calls before it"""
        form = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}
        body = self.body(tool(strict=True), response_format=form)
        name, arguments = self.call(body)
        self.assertEqual(name, "get_weather")
        self.check(arguments)
        self.assertNotIn("'strict'", json.dumps(self.post("/v1/chat/completions", body).json))
        brace = self.post("/tokenize", {"prompt": "{", "add_special_tokens": False}).json["tokens"]
        answer = self.post("/v1/chat/completions", {
            **body, "logit_bias": {str(brace[0]): 100},
            "structured_outputs": {"disable_any_whitespace": True}}).json["choices"][0]["message"]
        self.check(json.loads(answer["content"]))

    def test_responses_and_messages(self):
        answer = self.post("/v1/responses", {
            "input": "Weather?", "tools": [{"type": "function", **tool(strict=True)}],
            "temperature": 0, "max_output_tokens": NUM_TOKENS, "parallel_tool_calls": False,
            "logit_bias": {str(self.number): 100}}).json
        calls = [item for item in answer["output"] if item["type"] == "function_call"]
        self.check(json.loads(calls[0]["arguments"]))

class Hermes(Strict, MarkedCase):
    pass

class SpecialMarker(Strict, MarkedCase):
    special = True

class Elements(Strict, MarkedCase):
    parser = "qwen3_coder"

class NamesAndObjects(Strict, MarkedCase):
    parser = "mistral"
    marker = "[TOOL_CALLS]"
    special = True

class Sections(Strict, MarkedCase):
    parser = "kimi_k2"
    marker = "<|tool_calls_section_begin|>"

class Thoughts(MarkedCase):
    more_flags = ("--reasoning-parser", "deepseek_r1")

    def test_a_marker_within_reasoning_is_no_call(self):
        body = self.body(tool(strict=True), max_tokens=8)
        message = self.post("/v1/chat/completions", body).json["choices"][0]["message"]
        self.assertFalse(message.get("tool_calls"))
        self.assertTrue(message["reasoning"].startswith(2 * self.marker), message)

class OtherFormats(door.DoorCase):
    flags = ("--tool-call-parser", "pythonic", "--max-model-len", "512")

    def test_what_is_not_enforced_is_told(self):
        body = {"messages": door.USER, "max_tokens": 4, "tools": functions(tool(strict=True))}
        answer = self.post("/v1/chat/completions", body).json
        self.assertIn("'strict' of 'tools'", json.dumps(answer["warnings"]))
        body["response_format"] = {"type": "json_object"}
        self.assertIn("no tool is called", json.dumps(self.post("/v1/chat/completions", body).json))
        body["tools"] = functions(tool())
        self.assertNotIn("'strict'", json.dumps(self.post("/v1/chat/completions", body).json))

del MarkedCase, Strict  # not cases themselves

if __name__ == "__main__":
    door.main()
