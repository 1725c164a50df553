"""What the fields of a request ask of each other and /openapi.json cannot say.

Schemathesis fills in bodies that fit the document. Some of these are refused all the same, for
reasons that JSON schema has no words for: a number that another field bounds, a name that another
field must define, or a text in a language of its own. Valid bodies are repaired here before they are
sent; bodies that are meant to be wrong go out as they are.
"""

import json

import schemathesis

VOCABULARY = 3072  # of the bundled model
LIMITS = ("max_completion_tokens", "max_output_tokens", "max_tokens")
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer", "maximum": 99}},
          "required": ["a"], "additionalProperties": False}
FORMS = {"json": SCHEMA, "regex": "[ab]{1,3}", "grammar": 'start: "a" | "b"', "choice": ["a", "b"],
         "structural_tag": {"type": "structural_tag", "triggers": ["<a>"], "structures": [
             {"begin": "<a>", "schema": SCHEMA, "end": "</a>"}]}}


def is_chat_with_tools(body):
    return isinstance(body.get("tools"), list) and bool(body["tools"])


def repair_lengths(path, body):
    """Short texts, and min_tokens <= max_tokens."""
    name = "max_output_tokens" if path.startswith("/v1/responses") else "max_tokens"
    body.pop("n_predict", None)
    for limit in LIMITS:
        if body.get(limit) is not None:
            body[limit] = min(body[limit], 32) if body[limit] > 0 else 32
    if path != "/detokenize" and body.get(name) is None:
        body[name] = 16
    most = next(body[limit] for limit in LIMITS if body.get(limit) is not None)
    if body.get("min_tokens") is not None:
        body["min_tokens"] = min(body["min_tokens"], most)
    # A limit of nanoseconds is valid and ends in 503 or 504.
    for name in ("queue_timeout_seconds", "timeout_seconds"):
        if body.get(name) is not None:
            body[name] = max(body[name], 60)


def repair_tools(body):
    """Parameters are JSON schemas, and a choice names one of the tools."""
    # Those of other types are left out, and with them what a choice may name.
    body["tools"] = [tool for tool in body["tools"]
                     if isinstance(tool, dict) and ("name" in tool or "function" in tool)]
    if not body["tools"]:
        body.pop("tools")
        body.pop("tool_choice", None)
        return
    for tool in body["tools"]:
        function = tool.get("function") if isinstance(tool.get("function"), dict) else tool
        for name in ("parameters", "input_schema"):
            if function.get(name) is not None:
                function[name] = SCHEMA
    choice, first = body.get("tool_choice"), body["tools"][0]
    if not isinstance(choice, dict):
        return
    if "function" in choice:
        choice["function"] = {"name": first["function"]["name"]}
    elif ("name" in choice or choice.get("type") == "tool") and "name" in first:
        choice["name"] = first["name"]


def repair_response_format(holder, name):
    """A JSON schema in the place of any object."""
    form = holder.get(name)
    if not isinstance(form, dict):
        return
    if form.get("type") == "structural_tag":
        holder[name] = FORMS["structural_tag"]
    elif form.get("type") in ("regex", "grammar"):
        form["pattern" if form["type"] == "regex" else "grammar"] = FORMS[form["type"]]
    elif form.get("type") == "json_schema" and "json_schema" in form:
        form["json_schema"] = {"name": "a", "schema": SCHEMA}
    elif form.get("type") == "json_schema":
        form["schema"] = SCHEMA


def repair_forms(body):
    """At most one form of the output, in words of its language, that nothing else forbids."""
    choice = body.get("tool_choice")
    forced = (is_chat_with_tools(body) and choice not in (None, "none", "auto") and not (
        isinstance(choice, dict) and choice.get("type") in ("auto", "none")))
    text = body.get("text") if isinstance(body.get("text"), dict) else {}
    if forced or body.get("structured_outputs") is not None:
        body.pop("response_format", None)
        text.pop("format", None)
    if forced:
        body.pop("structured_outputs", None)
    others = [body.get("structured_outputs"), body.get("response_format"), text.get("format"),
              body.get("output_format"), (body.get("output_config") or {}).get("format")]
    for name in ("grammar", "json_schema"):
        if forced or any(others) or not body.get(name):
            body.pop(name, None)
        else:
            body[name] = FORMS["grammar"] if name == "grammar" else SCHEMA
            others.append(body[name])
    if body.get("output_format") and (forced or body.get("structured_outputs")):
        body.pop("output_format")
    if isinstance(body.get("output_config"), dict) and (
            forced or body.get("structured_outputs") or body.get("output_format")):
        body["output_config"].pop("format", None)
    repair_response_format(body, "output_format")
    if isinstance(body.get("output_config"), dict):
        repair_response_format(body["output_config"], "format")
    repair_response_format(body, "response_format")
    repair_response_format(text, "format")
    outputs = body.get("structured_outputs")
    if isinstance(outputs, dict):
        outputs.pop("whitespace_pattern", None)
        for name, value in FORMS.items():
            if outputs.get(name):
                outputs[name] = value
    if forced or outputs or any(others) or body.get("response_format") or text.get("format"):
        for name in ("allowed_token_ids", "bad_words", "min_tokens", "stop_token_ids"):
            body.pop(name, None)


def repair_input(body):
    """A conversation of more than items that are left out."""
    items = body.get("input")
    if isinstance(items, list) and not any(
            item.get("type") in (None, "message", "function_call", "function_call_output")
            for item in items):
        items.append({"role": "user", "content": "a"})


def repair_sampling(body):
    if isinstance(body.get("logit_bias"), dict):
        body["logit_bias"] = {str(int(key) % VOCABULARY): value
                              for key, value in body["logit_bias"].items()}
    if body.get("allowed_token_ids"):
        # Together they can forbid every token.
        for name in ("bad_words", "min_tokens"):
            body.pop(name, None)
    if body.get("stop") is not None and body.get("detokenize") is False:
        body["detokenize"] = True


def types_of(schema):
    """The types that a schema names itself."""
    named = schema.get("type", [])
    types = {named} if isinstance(named, str) else set(named)
    for value in [*schema.get("enum", []), *([schema["const"]] if "const" in schema else [])]:
        types.add("boolean" if isinstance(value, bool) else "null" if value is None else
                  "string" if isinstance(value, str) else "number")
    return types


def find_kinds(document, body):
    """The types that the fields of each name have in a body's schema, as a dict of sets."""
    kinds, seen = {}, set()

    def look(schema, name):
        if not isinstance(schema, dict):
            return
        refers = schema.get("$ref", "").rpartition("/")[2]
        if refers and (refers, name) not in seen:
            seen.add((refers, name))
            look(document["components"]["schemas"][refers], name)
        if name:
            kinds.setdefault(name, set()).update(types_of(schema))
        for key in ("anyOf", "oneOf", "allOf"):
            for one in schema.get(key, []):
                look(one, name)
        for inner, one in schema.get("properties", {}).items():
            look(one, inner)
        for one in (schema.get("items"), schema.get("additionalProperties")):
            look(one, name)

    look(body, "")
    return kinds


def kinds_of(operation):
    """find_kinds of what an operation of the document takes."""
    document = operation.schema.raw_schema
    request = document["paths"][operation.path][operation.method.lower()]["requestBody"]
    return find_kinds(document, request["content"]["application/json"]["schema"])


def is_loose(value, kinds):
    """Whether the server reads a value of another type as a number or a flag, as vLLM does."""
    if isinstance(value, bool):
        return "boolean" not in kinds and bool(kinds & {"integer", "number"})
    if isinstance(value, (int, float)):
        return value in (0, 1) and "boolean" in kinds and not kinds & {"integer", "number"}
    if not isinstance(value, str) or "string" in kinds:
        return False
    if kinds & {"integer", "number"}:
        try:
            float(value)
            return True
        except ValueError:
            pass
    words = ("0", "off", "f", "false", "n", "no", "1", "on", "t", "true", "y", "yes")
    return "boolean" in kinds and value.lower() in words


def break_loose_values(value, name, kinds):
    """`value` with what would be read as another type replaced by what no field of the name takes."""
    if isinstance(value, dict):
        return {key: break_loose_values(one, key if key in kinds else name, kinds)
                for key, one in value.items()}
    if isinstance(value, list):
        return [break_loose_values(one, name, kinds) for one in value]
    if not is_loose(value, kinds.get(name, set())):
        return value
    return [[{}]] if "object" in kinds[name] else {}


@schemathesis.hook
def before_call(context, case, kwargs):
    body = case.body
    if isinstance(body, dict) and not case.meta.generation.mode.is_positive:
        case.body = break_loose_values(body, "", kinds_of(case.operation))
        return
    if case.path == "/lora-adapters" and case.meta.generation.mode.is_positive:
        case.body = []
        return
    if not isinstance(body, dict) or not case.meta.generation.mode.is_positive:
        return
    # The server has no adapters.
    body.pop("lora", None)
    # A chat may be longer than the model's context.
    if len(json.dumps(body)) > 1000:
        body["truncate_prompt_tokens"] = -1
    # The final message must have a text to continue, and nothing may follow it.
    body.pop("continue_final_message", None)
    if case.path in ("/detokenize", "/abort_requests", "/v1/embeddings", "/pooling", "/embedding",
                     "/v1/score", "/v1/rerank"):
        return
    if case.path == "/tokenize" and "prompt" in body:
        return
    if case.path == "/v1/chat/completions/batch":
        for name in ("tools", "tool_choice", "stream_options"):
            body.pop(name, None)
    if is_chat_with_tools(body):
        repair_tools(body)
    if case.path.startswith("/v1/responses"):
        repair_input(body)
    repair_lengths(case.path, body)
    repair_forms(body)
    repair_sampling(body)
