#!/usr/bin/env python3
"""JSON schemas as clients and their libraries write them, and forms behind reasoning."""

import json
import pathlib
import re

import door

CAT = {"messages": door.USER, "max_tokens": 200, "temperature": 0.8, "seed": 5}
# What pydantic, zod and hand-written schemas have beside what can be enforced.
ANNOTATED = {
    "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Cat", "$comment": "c",
    "type": "object", "propertyNames": {"type": "string"}, "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "maxLength": 8, "format": "cat-name", "default": "Tom"},
        "lives": {"type": "integer", "minimum": 1, "maximum": 9, "format": "int32"},
        "kind": {"oneOf": [{"$ref": "#/$defs/Wild"}, {"$ref": "#/$defs/Tame"}]},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 2, "maxItems": 3,
                 "uniqueItems": True, "contains": {"const": "a"}}},
    "required": ["name", "lives", "kind", "tags"],
    "dependentRequired": {"name": ["lives"]}, "not": {"required": ["dog"]},
    "if": {"properties": {"lives": {"const": 1}}}, "then": {"required": ["will"]},
    "unevaluatedProperties": False,
    "$defs": {
        "Wild": {"type": "object", "properties": {"is": {"const": "wild"}}, "required": ["is"],
                 "additionalProperties": False},
        "Tame": {"type": "object", "properties": {"is": {"const": "tame"}}, "required": ["is"],
                 "additionalProperties": False}}}
LEFT_OUT = {"format", "uniqueItems", "contains", "if"}
TWO = {"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"type": "null"}},
       "required": ["a", "b"], "additionalProperties": False}


def tool(name, parameters, **more):
    return {"type": "function", "function": {"name": name, "parameters": parameters, **more}}


def content_of(answer):
    return answer["choices"][0]["message"]["content"]


class Lenient(door.DoorCase):
    def check_cat(self, cat):
        self.assertEqual(set(cat), {"name", "lives", "kind", "tags"})
        self.assertIn(cat["lives"], range(1, 10))
        self.assertIn(cat["kind"], ({"is": "wild"}, {"is": "tame"}))
        self.assertIn(len(cat["tags"]), (2, 3))
        self.assertLessEqual(set(cat["tags"]), {"a", "b"})

    def schema(self, schema, status=200, **more):
        form = {"type": "json_schema", "json_schema": {"name": "n", "strict": True, "schema": schema}}
        return self.post("/v1/chat/completions", {**CAT, "response_format": form, **more}, status).json

    def test_the_rest_is_enforced(self):
        self.check_cat(json.loads(content_of(self.schema(ANNOTATED))))

    def test_vllms_field(self):
        answer = self.post("/v1/chat/completions",
                           {**CAT, "structured_outputs": {"json": ANNOTATED}}).json
        self.check_cat(json.loads(content_of(answer)))

    def test_responses(self):
        answer = self.post("/v1/responses", {
            "input": "A cat.", "max_output_tokens": 200, "seed": 5,
            "text": {"format": {"type": "json_schema", "name": "n", "schema": ANNOTATED}}}).json
        self.check_cat(json.loads(answer["output"][0]["content"][0]["text"]))

    def test_objects_have_no_more_than_they_name(self):
        """As with vLLM's xgrammar and llama.cpp: models would go on with names of their own."""
        open_schema = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}
        for seed in range(3):
            answer = self.schema(open_schema, seed=seed, temperature=1.5)
            self.assertEqual(list(json.loads(content_of(answer))), ["a"])
            called = self.post("/v1/chat/completions", {
                **CAT, "tools": [tool("f", open_schema)], "tool_choice": "required", "seed": seed,
                "temperature": 1.5, "max_tokens": 60}).json["choices"][0]["message"]["tool_calls"][0]
            self.assertLessEqual(set(json.loads(called["function"]["arguments"])), {"a"})
        more = {**open_schema, "minProperties": 2}
        for form in ({"json": more}, {"json": {**open_schema, "required": ["b"]}},
                     {"json": open_schema, "disable_additional_properties": False}):
            self.post("/v1/chat/completions", {**CAT, "structured_outputs": form})

    def test_nothing_to_enforce(self):
        message = self.schema({"uniqueItems": True}, 400)["error"]["message"]
        self.assertIn("nothing of the JSON schema can be enforced", message)
        self.assertIn("'uniqueItems' at $", message)

    def test_no_value_fits(self):
        message = self.schema({"type": "string", "minLength": 3, "maxLength": 2}, 400)["error"]["message"]
        self.assertIn("nsatisfiable", message)

    def test_a_request_may_be_strict(self):
        message = self.post("/v1/chat/completions", {**CAT, "structured_outputs": {
            "json": ANNOTATED, "strict_schemas": True}}, 400).json["error"]["message"]
        for keyword in LEFT_OUT:
            self.assertIn(f"'{keyword}' at $", message)

    def test_schema_of_json_object(self):
        for kind in ("json_object", "json_schema"):
            answer = self.post("/v1/chat/completions",
                               {**CAT, "response_format": {"type": kind, "schema": TWO}}).json
            self.assertEqual(set(json.loads(content_of(answer))), {"a", "b"})

    def test_llama_cpps_field(self):
        answer = self.post("/v1/chat/completions", {**CAT, "json_schema": TWO, "grammar": ""}).json
        self.assertEqual(set(json.loads(content_of(answer))), {"a", "b"})

    def test_white_space_is_bounded(self):
        # A model that would write nothing but blanks.
        blanks = {str(i): 100 for i in self.blanks()}
        text = content_of(self.schema(TWO, logit_bias=blanks))
        self.assertEqual(set(json.loads(text)), {"a", "b"})
        self.assertLess(len(re.findall(r"\s", text)), 120, text)

    def blanks(self):
        model = json.loads((pathlib.Path(door.BUNDLED) / "tokenizer.json").read_text(encoding="utf-8"))
        vocabulary = model["model"]["vocab"]
        return [i for word, i in vocabulary.items() if word and not word.strip("ĠĊĉč")]

    def test_forced_tools(self):
        node = {"type": "object", "properties": {"next": {"$ref": "#"}, "v": {"$ref": "#/$defs/V"}},
                "required": ["v"], "additionalProperties": False}
        tools = [tool("cat", ANNOTATED, strict=True),
                 tool("one", {**node, "$defs": {"V": {"enum": [1]}}}),
                 tool("two", {**node, "$defs": {"V": {"enum": [2]}}, "uniqueItems": True})]
        for choice in ("required", *({"type": "function", "function": {"name": one}}
                                     for one in ("cat", "one", "two"))):
            answer = self.post("/v1/chat/completions", {
                **CAT, "max_tokens": 400, "tools": tools, "tool_choice": choice,
                "parallel_tool_calls": False}).json
            call = answer["choices"][0]["message"]["tool_calls"][0]["function"]
            if call["name"] == "cat":
                self.check_cat(json.loads(call["arguments"]))
                continue
            # The model may go deeper until its tokens end.
            self.assertTrue(call["arguments"].startswith("{\""), call)
            self.assertLessEqual(set(re.findall(r'"(\w+)":', call["arguments"])), {"v", "next"})
            values = set(re.findall(r'"v":(\w+)', call["arguments"]))
            self.assertLessEqual(values, {{"one": "1", "two": "2"}[call["name"]]})


class Strict(door.DoorCase):
    flags = ("--strict-schemas",)

    def test_refused(self):
        for field in ({"response_format": {"type": "json_schema", "json_schema": {"schema": ANNOTATED}}},
                      {"tools": [tool("cat", ANNOTATED)], "tool_choice": "required"}):
            message = self.post("/v1/chat/completions", {**CAT, **field}, 400).json["error"]["message"]
            self.assertIn("'uniqueItems' at $", message)

    def test_what_only_describes_is_none(self):
        schema = {**TWO, "propertyNames": {"type": "string"}, "$comment": "c", "examples": [1]}
        answer = self.post("/v1/chat/completions",
                           {**CAT, "response_format": {"type": "json_object", "schema": schema}}).json
        self.assertEqual(set(json.loads(content_of(answer))), {"a", "b"})


def reasoning_model():
    """The bundled model under a template that begins with reasoning: its full stop ends it."""
    file = pathlib.Path(door.BUNDLED) / "tokenizer.json"
    tokenizer = json.loads(file.read_text(encoding="utf-8"))
    model = tokenizer["model"]
    model["vocab"]["</think>"] = model["vocab"].pop(".")
    model["merges"] = [merge for merge in model["merges"] if "." not in "".join(merge)]
    config = json.loads((file.parent / "tokenizer_config.json").read_text(encoding="utf-8"))
    config["chat_template"] = config["chat_template"].replace(
        "'<|assistant|>' -}}{%- endif -%}", "'<|assistant|><think>\\n' -}}{%- endif -%}")
    return door.model_copy(tokenizer__json=tokenizer, tokenizer_config__json=config)


def harmony_model():
    """The bundled model under a template that leaves gpt-oss's channels to it, whose markers are
    tokens of their own: its full stop ends a message."""
    file = pathlib.Path(door.BUNDLED) / "tokenizer.json"
    tokenizer = json.loads(file.read_text(encoding="utf-8").replace("<|end|>", "<|return|>"))
    vocab = tokenizer["model"]["vocab"]
    last = [text for text, _ in sorted(vocab.items(), key=lambda item: item[1])[-4:]]
    names = dict(zip(last, ["<|start|>", "<|channel|>", "<|message|>", "<|constrain|>"]))
    names["."] = "<|end|>"
    for text, name in names.items():
        tokenizer["added_tokens"].append({
            "id": vocab[text], "content": name, "single_word": False, "lstrip": False,
            "rstrip": False, "normalized": False, "special": True})
        vocab[name] = vocab.pop(text)
    pairs = [merge.split(" ") if isinstance(merge, str) else merge
             for merge in tokenizer["model"]["merges"]]
    tokenizer["model"]["merges"] = [pair for pair in pairs if "".join(pair) not in names
                                    and "." not in "".join(pair)]
    config = json.loads((file.parent / "tokenizer_config.json").read_text(encoding="utf-8"))
    config["chat_template"] = (
        "{% for m in messages %}<|user|>{{ m.content }}<|return|>{% endfor %}"
        "{% if add_generation_prompt %}<|start|>assistant{% endif %}"
        "{# <|channel|>analysis<|message|> #}")
    return door.model_copy(tokenizer__json=tokenizer, tokenizer_config__json=json.loads(
        json.dumps(config).replace("<|end|>", "<|return|>")))


class BehindReasoning(door.DoorCase):
    flags = ("--reasoning-parser", "qwen3")
    make_model = staticmethod(reasoning_model)
    reasoning_is_certain = True

    @classmethod
    def setUpClass(cls):
        cls.folder = cls.make_model()
        cls.model = cls.folder.name
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    def contents(self, form):
        reasoning = []
        for seed in range(2):
            body = {"messages": door.USER, "max_tokens": 300, "seed": seed, **form}
            message = self.post("/v1/chat/completions", body).json["choices"][0]["message"]
            reasoning.append(message["reasoning"])
            yield message["content"]
        self.assertTrue((all if self.reasoning_is_certain else any)(reasoning), reasoning)
        events = self.post("/v1/chat/completions", {
            "messages": door.USER, "max_tokens": 300, "seed": 9, "stream": True, **form}).events
        yield "".join(e["choices"][0]["delta"].get("content") or "" for e in events if e["choices"])

    def test_choice(self):
        for text in self.contents({"structured_outputs": {"choice": ["yes", "no"]}}):
            self.assertIn(text, ("yes", "no"))

    def test_regex(self):
        for text in self.contents({"structured_outputs": {"regex": "[A-Z]{2}[0-9]{3}"}}):
            self.assertRegex(text, r"\A[A-Z]{2}[0-9]{3}\Z")

    def test_grammars(self):
        for grammar in ('root ::= "<" [0-9]{2} ">"', 'start: "<" /[0-9]{2}/ ">"'):
            for text in self.contents({"structured_outputs": {"grammar": grammar}}):
                self.assertRegex(text, r"\A<[0-9]{2}>\Z")

    def test_schema(self):
        form = {"response_format": {"type": "json_schema", "json_schema": {"schema": TWO}}}
        for text in self.contents(form):
            self.assertEqual(text[0], "{")
            self.assertEqual(set(json.loads(text)), {"a", "b"})

    def test_forced_tool(self):
        for choice in ("required", {"type": "function", "function": {"name": "f"}}):
            answer = self.post("/v1/chat/completions", {
                "messages": door.USER, "max_tokens": 300, "tools": [tool("f", TWO)],
                "tool_choice": choice, "parallel_tool_calls": False, "seed": 1}).json
            message = answer["choices"][0]["message"]
            self.assertTrue(message["reasoning"] or not self.reasoning_is_certain, message)
            arguments = message["tool_calls"][0]["function"]["arguments"]
            self.assertEqual(set(json.loads(arguments)), {"a", "b"})


class InTheFinalChannel(BehindReasoning):
    """The same where the reasoning has a message of its own, and the form has the next."""

    flags = ()
    make_model = staticmethod(harmony_model)
    reasoning_is_certain = False


if __name__ == "__main__":
    door.main()
