#!/usr/bin/env python3
"""Every operation that /openapi.json names, without optional fields and with each of them alone.

What an operation requires is all that a client may have to send; a field that is there alone, or
null as many clients write fields that they do not use, is no reason to refuse a request.
"""

import door

# What other fields a field needs, as OpenAI's API has it too.
NEEDS = {
    "stream_options": {"stream": True},
    "top_logprobs": {"logprobs": True},
    "tool_choice": {"tools": "sample"},
}
SCHEMA = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"],
          "additionalProperties": False}
# Texts in a language of their own, names that must be served, and numbers that stand for a time.
SAMPLES = {
    "guided_choice": ["a", "b"], "guided_grammar": 'start: "a"', "guided_json": SCHEMA,
    "guided_regex": "[ab]", "structured_outputs": {"choice": ["a", "b"]},
    "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}},
    "grammar": 'root ::= "a"', "json_schema": SCHEMA, "text": {"format": {"type": "text"}},
    "model": "foretoken-7m", "queue_timeout_seconds": 60, "timeout_seconds": 60,
    "max_tokens": 16, "max_completion_tokens": 16, "max_output_tokens": 16, "n_predict": 16,
    "flex_mask": "q - kv < 64", "flex_score": "score - 1",
    "min_tokens": 2, "previous_response_id": None, "conversation": None, "priority": 0,
}


class Samples:
    """Small values that fit schemas of the document."""

    def __init__(self, document):
        self.schemas = document["components"]["schemas"]

    def resolve(self, schema):
        while "$ref" in schema:
            schema = self.schemas[schema["$ref"].rsplit("/", 1)[1]]
        return schema

    def value(self, schema, name=""):
        if name in SAMPLES:
            return SAMPLES[name]
        schema = self.resolve(schema)
        for key in ("anyOf", "oneOf"):
            if key in schema and "properties" not in schema:
                kinds = [self.resolve(kind) for kind in schema[key]]
                return self.value(next(kind for kind in kinds if kind.get("type") != "null"))
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return next(value for value in schema["enum"] if value is not None)
        kind = schema.get("type", "object")
        if isinstance(kind, list):
            kind = next(one for one in kind if one != "null")
        return getattr(self, f"make_{kind}")(schema)

    def make_object(self, schema, wanted=""):
        """The least object, which holds `wanted` where one of several fields is needed."""
        fields = schema.get("properties", {})
        required = list(schema.get("required", []))
        choices = [one["required"] for one in schema.get("anyOf", []) if "required" in one]
        if choices:
            required += next((one for one in choices if wanted in one), choices[0])
        return {name: self.value(fields[name], name) for name in required}

    def make_array(self, schema):
        return [self.value(schema.get("items", {"type": "string"}))
                for _ in range(max(schema.get("minItems", 1), 1))]

    def make_string(self, schema):
        return "a" * max(schema.get("minLength", 1), 1)

    def make_integer(self, schema):
        return max(schema.get("minimum", 1), min(schema.get("maximum", 1), 1))

    def make_number(self, schema):
        return max(schema.get("minimum", 0.5), min(schema.get("maximum", 0.5), 0.5))

    def make_boolean(self, _):
        return True


def body_schema(operation):
    return operation["requestBody"]["content"]["application/json"]["schema"]


class EveryOperation(door.DoorCase):
    """Operations of a server with a drafter, whose answers end soon: bodies that say nothing of a length are most."""

    folder = door.model_copy(**door.one_layer())
    model = folder.name
    flags = ("--served-model-name", "foretoken-7m", "--max-model-len", "320", "--max-num-seqs", "4",
             "--attention-backend", "flex", "--flex-mask", "kv <= q and request",
             "--flex-score", "request", "--override-generation-config", '{"max_new_tokens": 16}', "--speculative-config",
             '{"method": "ngram", "num_speculative_tokens": 3, "length_policy": "fixed"}')

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.document = cls.send("GET", "/openapi.json").json
        cls.samples = Samples(cls.document)

    def posts(self):
        """Path and schemas of the bodies of each POST operation that has one."""
        for path, methods in self.document["paths"].items():
            operation = methods.get("post", {})
            if "requestBody" not in operation or "{" in path:
                continue
            schema = self.samples.resolve(body_schema(operation))
            yield path, [self.samples.resolve(one) for one in schema.get("anyOf", [schema])
                         if one.get("type") != "null"] if "properties" not in schema else [schema]

    def filled(self, schema, name):
        """The least body with one more field, and what that one needs."""
        body = self.samples.make_object(schema, name)
        fields = schema["properties"]
        for other, value in NEEDS.get(name, {}).items():
            if other not in fields:
                continue
            body[other] = self.samples.value(fields[other], other) if value == "sample" else value
        body[name] = self.samples.value(fields[name], name)
        return body

    def test_gets(self):
        said = [{"role": "user", "content": "Hi"}]
        talk = self.post("/v1/conversations", {"items": said}).json["id"]
        item = self.get(f"/v1/conversations/{talk}/items").json["data"][0]["id"]
        made = self.post("/v1/responses", {"input": "Hi", "max_output_tokens": 1}).json["id"]
        for path, methods in self.document["paths"].items():
            if "get" in methods:
                name = (made if "responses" in path else talk if "conversations" in path
                        else "foretoken-7m")
                with self.subTest(path):
                    self.get(path.replace("{id}", name).replace("{item}", item))

    def test_what_is_required_is_enough(self):
        for path, schemas in self.posts():
            for schema in schemas:
                with self.subTest(path):
                    self.post(path, self.samples.make_object(schema))

    def test_each_field_alone(self):
        for path, schemas in self.posts():
            for schema in schemas:
                for name, field in schema["properties"].items():
                    if field.get("type") == "null":
                        continue  # what clients write who do not use it
                    with self.subTest(f"{path} {name}"):
                        self.post(path, self.filled(schema, name))

    def test_each_field_as_null(self):
        for path, schemas in self.posts():
            for schema in schemas:
                with self.subTest(path):
                    body = self.samples.make_object(schema)
                    unused = {name: None for name in schema["properties"] if name not in body}
                    self.post(path, {**body, **unused})


if __name__ == "__main__":
    door.main()
