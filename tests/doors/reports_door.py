#!/usr/bin/env python3
"""What people reported of other servers, as the smallest request each.

The names behind the cases are the projects' public reports: vllm is vllm-project/vllm, llama is
ggml-org/llama.cpp, sglang is sgl-project/sglang, trt is NVIDIA/TensorRT-LLM.
"""

import json
import socket
import urllib.parse

import door

TEMPLATES = door.ROOT / "tests" / "text" / "data" / "chat_templates"
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": SCHEMA}}
OTHER = {"type": "function", "function": {"name": "g", "parameters": {"type": "object"}}}
HALF = "\ud83e"
CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"


def forced(text):
    """Makes the model write `text`."""
    return {"temperature": 0, "structured_outputs": {"choice": [text]}}


def called(*ids, result="42"):
    """An answer with calls of these ids and their results."""
    calls = [{"id": one, "type": "function", "function": {"name": "f", "arguments": "{}"}}
             for one in ids]
    return [{"role": "assistant", "content": None, "tool_calls": calls}] + [
        {"role": "tool", "tool_call_id": one, "content": result} for one in ids]


class ReportCase(door.DoorCase):
    def chat(self, status=200, **more):
        return self.post(CHAT, {"messages": door.USER, "max_tokens": 8, **more}, status).json

    def message(self, **more):
        return self.chat(**more)["choices"][0]["message"]

    def prompt(self, messages, **more):
        return self.post("/apply-template", {"messages": messages, **more}).json["prompt"]


class Answers(ReportCase):
    def test_no_calls_are_no_list(self):
        """vllm 44104, vllm-ascend 9790, openclaw 61534, autogen 3120"""
        self.assertNotIn("tool_calls", self.message())
        self.assertNotIn("tool_calls", self.message(tools=[TOOL]))
        events = self.post(CHAT, {"messages": door.USER, "tools": [TOOL], "max_tokens": 4,
                                  "stream": True}).events
        self.assertTrue(all("tool_calls" not in choice["delta"]
                            for event in events for choice in event["choices"]))

    def test_choices_of_no_tools(self):
        """vllm 9426 and 10000, vllm-mlx 162; vllm 55080: what looks like a call is content"""
        call = "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>"
        for more in ({"tool_choice": "none"}, {"tool_choice": "none", "tools": []},
                     {"tool_choice": "auto", "tools": []}, {"tool_choice": "none", "tools": [TOOL]}):
            message = self.message(**more, **forced(call), max_tokens=200)
            self.assertEqual(message["content"], call, more)
            self.assertFalse(message.get("tool_calls"))

    def test_one_call_where_several_are_not_wanted(self):
        """sglang 9696"""
        call = "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>"
        for parallel in (True, False):
            message = self.message(tools=[TOOL], parallel_tool_calls=parallel, max_tokens=200,
                                   **forced(call + call))
            self.assertEqual(len(message["tool_calls"]), 2 if parallel else 1)

    def test_usage_comes_where_it_is_asked_for(self):
        """vllm 36379 and 7262, sglang 954"""
        for options, wanted in (({}, 0), (None, 0), ({"include_usage": True}, 1)):
            events = self.post(CHAT, {"messages": door.USER, "max_tokens": 3, "stream": True,
                                      "stream_options": options}).events
            told = [event for event in events if event.get("usage")]
            self.assertEqual(len(told), wanted, options)
            self.assertTrue(all(event["choices"] == [] for event in told))

    def test_streams_say_who_speaks_and_how_they_end(self):
        """sglang 18335 and 3912, vllm 19650 and 27572, ollama 4357"""
        events = self.post(CHAT, {"messages": door.USER, "max_tokens": 5, "stream": True}).events
        self.assertEqual(events[0]["choices"][0]["delta"], {"role": "assistant", "content": ""})
        reasons = [event["choices"][0]["finish_reason"] for event in events]
        self.assertEqual(reasons[:-1], [None] * (len(events) - 1))
        self.assertIn(reasons[-1], ("stop", "length"))

    def test_stop_texts_never_show(self):
        """vllm 3572 and 3574"""
        for stop, text in (("DE", "ABC"), ("DEFGHIJ", "ABC"), (["HI", "D"], "ABC"), ("ZZ", "ABCDEFGHIJK"),
                           ("A", "")):
            body = {"messages": door.USER, "stop": stop, "max_tokens": 60, **forced("ABCDEFGHIJK")}
            self.assertEqual(self.post(CHAT, body).json["choices"][0]["message"]["content"], text)
            events = self.post(CHAT, {**body, "stream": True}).events
            self.assertEqual("".join(e["choices"][0]["delta"].get("content", "") for e in events), text)

    def test_prompts_echo_with_and_without_output(self):
        """vllm 6521 and 2703"""
        body = {"prompt": "Your answer: Yes", "echo": True, "logprobs": 1}
        choice = self.post("/v1/completions", {**body, "max_tokens": 0}).json["choices"][0]
        self.assertEqual(choice["text"], "Your answer: Yes")
        events = self.post("/v1/completions", {**body, "max_tokens": 2, "stream": True}).events
        self.assertTrue(events[0]["choices"][0]["text"].startswith("Your answer: Yes"))
        for event in events:
            self.assertGreater(len(event["choices"][0]["logprobs"]["tokens"]), 0)

    def test_seeds_of_every_sign(self):
        """trt 5622, vllm 4529 and 4531"""
        texts = [self.message(seed=seed, max_tokens=24)["content"] for seed in (-7, -7, -8)]
        self.assertEqual(texts[0], texts[1])
        self.assertNotEqual(texts[0], texts[2])
        self.chat(seed=-1)
        self.assertIn("seed", self.chat(seed=2**64, status=400)["error"]["message"])


class TooLong(ReportCase):
    """Agents shorten their history when they know the error: opencode 17762 and 6068, pi 5930,
    openclaw 64180, kanban 504, vllm 37011, trt 19457, omlx 26."""

    long = [{"role": "user", "content": "x " * 3000}]

    def test_openai(self):
        for path, body in ((CHAT, {"messages": self.long}), (RESPONSES, {"input": self.long}),
                           (CHAT, {"messages": self.long, "stream": True}),
                           ("/v1/completions", {"prompt": "x " * 3000}),
                           ("/v1/embeddings", {"input": "x " * 3000})):
            error = self.post(path, body, 400).json["error"]
            self.assertEqual(error["code"], "context_length_exceeded", path)
            self.assertRegex(error["message"], r"maximum context length is 2048 tokens")

    def test_anthropic(self):
        answer = self.post(MESSAGES, {"messages": self.long, "max_tokens": 4}, 400).json
        self.assertEqual(answer["error"]["type"], "invalid_request_error")
        self.assertRegex(answer["error"]["message"],
                         r"^prompt is too long: \d+ tokens > 2048 maximum")

    def test_more_tokens_than_fit_are_no_error(self):
        """vllm 42474 and 19861, pi 4675"""
        self.chat(max_tokens=65535, stop="!")


class Requests(ReportCase):
    def test_halves_of_characters(self):
        """claude-code 3277, 5934, 60394 and 72995, eliza 18079"""
        for path, body in ((CHAT, {"messages": [{"role": "user", "content": "cut " + HALF}]}),
                           (MESSAGES, {"messages": [{"role": "user", "content": "cut " + HALF}]}),
                           ("/v1/completions", {"prompt": HALF + " cut"})):
            self.post(path, {**body, "max_tokens": 1})
        self.assertIn("cut \N{REPLACEMENT CHARACTER} and \N{UNICORN FACE}", self.prompt(
            [{"role": "user", "content": "cut " + HALF + " and \ud83e\udd84"}]))

    def test_other_encodings_are_named(self):
        """llama 6396"""
        body = '{"messages": [{"role": "user", "content": "你好"}]}'.encode("gbk")
        self.assertIn("UTF-8", self.post(CHAT, body, 400).json["error"]["message"])

    def test_contents_that_say_they_are_empty(self):
        nothing = [{"role": "user", "content": [{"type": "container_upload", "file_id": "f"}]}]
        self.post(MESSAGES, {"messages": nothing, "max_tokens": 1}, 400)
        self.post(CHAT, {"messages": [{"role": "user", "content": None}], "max_tokens": 1})
        self.post(MESSAGES, {"messages": [*door.USER, {"role": "assistant", "content": []},
                                          *door.USER], "max_tokens": 1})

    def test_tools_as_clients_describe_them(self):
        """llm-tools-mcp 51, llama 19716, 17574 and 14227"""
        for schema in ({"properties": {}, "type": "object"}, None,
                       {"type": "object", "properties": {"value": {"description": "any"}}},
                       {"type": "object", "properties": {"a": {"anyOf": [{"not": {}},
                                                                         {"type": "string"}]}}}):
            tool = {"type": "function",
                    "function": {"name": "f", "description": None, "parameters": schema}}
            for choice in ("auto", "required"):
                self.chat(tools=[tool], tool_choice=choice)

    def test_tools_and_choices_of_responses(self):
        """litellm 34029"""
        flat = {"type": "function", "name": "f", "parameters": SCHEMA}
        for choice in ({"type": "function", "name": "f"}, "any",
                       {"type": "allowed_tools",
                        "allowed_tools": {"mode": "required", "tools": [TOOL]}}):
            message = self.message(tools=[flat, OTHER][:2 if choice != "any" else 1], max_tokens=200,
                                   tool_choice=choice, temperature=0, parallel_tool_calls=False)
            self.assertEqual(message["tool_calls"][0]["function"]["name"], "f", choice)

    def test_forced_calls_beside_a_form_of_texts(self):
        """vllm 32006"""
        form = {"response_format": {"type": "json_object"}}
        answer = self.chat(tools=[TOOL], tool_choice="required", parallel_tool_calls=False,
                           max_tokens=200, temperature=0, **form)
        self.assertEqual(len(answer["choices"][0]["message"]["tool_calls"]), 1)
        self.assertIn("'response_format' holds for texts", " ".join(answer["warnings"]))

    def test_a_form_of_texts_leaves_room_for_calls(self):
        """vllm 39929"""
        ids = {text: self.post("/tokenize", {"prompt": text}).json["tokens"] for text in "{<"}
        body = {"tools": [TOOL], "max_tokens": 60, "temperature": 0,
                "response_format": {"type": "json_schema", "json_schema": {
                    "name": "x", "schema": {**SCHEMA, "required": ["a"]}}}}
        text = self.message(**body, logit_bias={ids["<"][0]: -100})["content"]
        self.assertEqual(list(json.loads(text)), ["a"])
        calls = self.message(**body, logit_bias={ids["{"][0]: -100})["tool_calls"]
        self.assertEqual(calls[0]["function"]["name"], "f")

    def test_ids_that_are_null(self):
        """aichat 1296"""
        history = called("x")
        history[0]["tool_calls"][0]["id"] = history[1]["tool_call_id"] = None
        self.post(CHAT, {"messages": [*door.USER, *history], "tools": [TOOL], "max_tokens": 1})

    def test_forms_that_are_none(self):
        """vllm 45346, 17248 and 43920: told, and the server goes on"""
        for form in ({"json_object": False}, {"json": ""}, {"json": "{"}, {"regex": "("},
                     {"grammar": "root ::= ("}, {"choice": []}):
            self.chat(structured_outputs=form, status=400)
        self.chat()

    def test_schemas_of_old_drafts_and_escapes(self):
        """vllm 30346, llama 19051"""
        def answer(schema):
            return json.loads(self.message(max_tokens=200, temperature=0, response_format={
                "type": "json_schema", "json_schema": {"name": "x", "schema": schema}})["content"])
        pair = answer({"type": "array", "items": [{"type": "integer", "maximum": 9, "minimum": 0},
                                                  {"enum": ["a"]}],
                       "additionalItems": False, "minItems": 2})
        self.assertEqual(pair[1:], ["a"])
        self.assertEqual(answer({"type": "object", "required": ["a"], "properties": {
            "a": {"type": "string", "pattern": "^hello there indeed\\!$"}}}),
            {"a": "hello there indeed!"})

    def test_connections(self):
        """llama 20264: bodies in chunks; NemoClaw 10243: refused before the body is sent"""
        parts = urllib.parse.urlsplit(self.url)

        def first_line(request):
            with socket.create_connection((parts.hostname, parts.port), timeout=120) as link:
                link.sendall(request.encode())
                return link.recv(4096).split(b"\r\n")[0]
        body = json.dumps({"messages": door.USER, "max_tokens": 1})
        head = f"POST {CHAT}?api-version=1 HTTP/1.1\r\nHost: x\r\n"
        chunks = f"Transfer-Encoding: chunked\r\n\r\n{len(body):X};a=b\r\n{body}\r\n0\r\n\r\n"
        self.assertEqual(first_line(head + chunks), b"HTTP/1.1 200 OK")
        expect = head + "Expect: 100-continue\r\nContent-Length: {}\r\n\r\n"
        self.assertEqual(first_line(expect.format(len(body))), b"HTTP/1.1 100 Continue")
        self.assertIn(b"413", first_line(expect.format(10**12)))


class Continued(ReportCase):
    """litellm 28580 and 28584, vllm 9446, 9547 and 6772"""

    start = "Once upon"

    def test_an_answer_that_stands_last_goes_on(self):
        history = [*door.USER, {"role": "assistant", "content": self.start}]
        usual = self.post(CHAT, {"messages": history, "continue_final_message": True, "temperature": 0,
                                 "add_generation_prompt": False, "max_tokens": 6}).json
        text = usual["choices"][0]["message"]["content"]
        self.assertTrue(text.startswith(" a time"), text)
        last = {**history[-1], "prefix": True}
        self.assertEqual(self.post(CHAT, {"messages": [history[0], last], "temperature": 0,
                                          "max_tokens": 6}).json["choices"][0]["message"]["content"],
                         text)
        for content in (self.start, [{"type": "text", "text": self.start}]):
            answer = self.post(MESSAGES, {
                "messages": [history[0], {"role": "assistant", "content": content}],
                "temperature": 0, "max_tokens": 6}).json
            self.assertEqual(answer["content"], [{"type": "text", "text": text}])

    def test_white_space_at_its_end(self):
        for end in ("\n", "\t", " "):
            for path, more in ((CHAT, {"continue_final_message": True}), (MESSAGES, {})):
                self.post(path, {"messages": [*door.USER, {"role": "assistant", "content": "OK!" + end}],
                                 "max_tokens": 1, **more})


class Responses(ReportCase):
    def test_results_in_parts_and_reasoning_without_words(self):
        """llama 23465, litellm 13420, vllm 33089"""
        items = [{"role": "user", "content": "x"}, {"type": "reasoning", "id": "rs_1", "summary": []},
                 {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
                 {"type": "function_call_output", "call_id": "c1",
                  "output": [{"type": "input_text", "text": "42"}]}]
        self.post(RESPONSES, {"input": items, "max_output_tokens": 2,
                              "tools": [{"type": "function", "name": "f", "parameters": SCHEMA}]})

    def test_events_have_what_strict_clients_need(self):
        """llama 20607, ogx 5309, litellm 20570 and 28899"""
        events = self.post(RESPONSES, {"input": "Hi", "stream": True, "max_output_tokens": 3}).events
        self.assertEqual([event["sequence_number"] for event in events], list(range(len(events))))
        kinds = [event["type"] for event in events]
        self.assertLess(kinds.index("response.output_text.done"),
                        kinds.index("response.content_part.done"))
        for event in events:
            if event["type"].startswith("response.output_"):
                self.assertEqual(event["output_index"], 0)
        done = next(e for e in events if e["type"] == "response.output_item.done")["item"]
        response = events[-1]["response"]
        self.assertEqual(done, response["output"][0])
        self.assertEqual(done["status"], "incomplete")
        details = response["usage"]["input_tokens_details"]
        self.assertEqual(details, {"cached_tokens": details["cached_tokens"], "cache_write_tokens": 0})

    def test_without_tools_nothing_is_called(self):
        """vllm 40314"""
        call = "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>"
        output = self.post(RESPONSES, {"input": "Hi", "max_output_tokens": 200, **forced(call)}).json[
            "output"]
        self.assertEqual([item["type"] for item in output], ["message"])


class Histories(ReportCase):
    """What gateways and older turns leave in a history never ends a conversation."""

    flags = ("--chat-template", "{{ messages | tojson }}", "--served-model-name", "*")
    user = {"role": "user", "content": "Hi"}

    def claude(self, *messages):
        """claude-code#31026 and gateways: blocks without types, inputs as texts."""
        body = {"model": "claude", "max_tokens": 2, "messages": [self.user, *messages]}
        return self.post(MESSAGES, body).json

    def length(self, answer):
        usage = answer["usage"]
        return usage["input_tokens"] + usage["cache_read_input_tokens"]

    def test_messages(self):
        call = {"type": "tool_use", "id": "t", "name": "f", "input": {"a": "b"}}
        result = {"type": "tool_result", "tool_use_id": "t", "content": [{"text": "ok"}]}
        whole = self.claude({"role": "assistant", "content": [call]},
                            {"role": "user", "content": [{**result, "content": "ok"}]})
        for one in (call, {**call, "input": json.dumps(call["input"], separators=(",", ":"))}):
            answer = self.claude({"role": "assistant", "content": [one]},
                                 {"role": "user", "content": [result]})
            self.assertEqual(self.length(answer), self.length(whole))
        for given in (None, "", "{\"a"):
            self.claude({"role": "assistant", "content": [{**call, "input": given}]},
                        {"role": "user", "content": [result]})
        self.claude({"role": "assistant", "content": None}, self.user)

    def test_responses(self):
        call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": None}
        for output in (None, "", "ok", {"a": 1}, [{"type": "input_text", "text": "o"}]):
            self.post(RESPONSES, {"max_output_tokens": 2, "input": [
                self.user, call, {"type": "function_call_output", "call_id": "c",
                                  "output": output}]})
        self.post(RESPONSES, {"max_output_tokens": 2, "input": [
            self.user, {"type": "message", "role": "assistant", "content": None}, self.user]})

    def test_functions_of_chats_in_responses(self):
        """llama#22389, the other way round: one list of tools for both routes."""
        answer = self.post(RESPONSES, {"max_output_tokens": 60, "input": "Hi", "tools": [TOOL],
                                       "tool_choice": "required"}).json
        self.assertEqual(answer["output"][0]["name"], "f")

    def test_results_as_objects(self):
        history = called("1")
        history[1]["content"] = {"a": 1}
        self.chat(messages=[self.user, *history])


class InTurns(ReportCase):
    """A template that refuses what does not come in turns."""

    flags = ("--chat-template", str(TEMPLATES / "mistralai-Mistral-Nemo-Instruct-2407.jinja"))

    def test_answers_with_an_empty_list_of_calls(self):
        """vllm 12937, autogen 3120"""
        history = [*door.USER, {"role": "assistant", "content": "one", "tool_calls": []},
                   {"role": "user", "content": "two"}]
        self.assertIn("one", self.prompt(history))
        self.post(CHAT, {"messages": history, "max_tokens": 1})

    def test_conversations_that_begin_with_an_answer(self):
        """autogen 3597 and 1037, adk-python 1373, llama 19851"""
        for before in ([], [{"role": "system", "content": "rules"}]):
            history = [*before, {"role": "assistant", "content": "Welcome"}, *door.USER]
            self.assertIn("Welcome", self.prompt(history))
            answer = self.post(CHAT, {"messages": history, "max_tokens": 1})
            self.assertIn("begin with a user message", answer.json["warnings"][0])
            self.post(MESSAGES, {"messages": history, "max_tokens": 1})

    def test_agents_by_anthropics_api(self):
        """vllm 38738 and 48874"""
        use = {"type": "tool_use", "id": "toolu_01A09q90qw90lq917835lq9", "name": "f", "input": {}}
        history = [*door.USER, {"role": "system", "content": "Agents: none."},
                   {"role": "assistant", "content": [{"type": "text", "text": "Now"}, use]},
                   {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use["id"],
                                                 "content": "42"}]}]
        self.post(MESSAGES, {"messages": history, "max_tokens": 1,
                             "tools": [{"name": "f", "input_schema": SCHEMA}]})


KIMI = """{%- if tools -%}<|im_system|>{{ tools | tojson }}<|im_end|>{%- endif -%}
{%- for m in messages -%}<|{{ m.role }}|>{%- if m.get('tool_calls') -%}<|tool_calls_section_begin|>
{%- for c in m['tool_calls'] -%}<|tool_call_begin|>{{ c['id'] }}<|tool_call_argument_begin|>
{{- c['function']['arguments'] if c['function']['arguments'] is string else
c['function']['arguments'] | tojson }}<|tool_call_end|>{%- endfor -%}<|tool_calls_section_end|>
{%- elif m.role == 'tool' -%}## Return of {{ m.tool_call_id }}
{{ m.content }}{%- else -%}{{ m.content }}{%- endif -%}{%- endfor -%}<|assistant|>"""


class Kimi(ReportCase):
    """A template as Kimi's, in which the id is all that names a called function."""

    flags = ("--chat-template", KIMI)

    def test_ids_name_their_functions(self):
        """vllm 50768 and 46344"""
        prompt = self.prompt([*door.USER, *called("chatcmpl-tool-1", "chatcmpl-tool-2")], tools=[TOOL])
        for name in ("functions.f:0<", "functions.f:1<", "Return of functions.f:0\n",
                     "Return of functions.f:1\n"):
            self.assertIn(name, prompt)

    def test_sections_in_both_spellings(self):
        """llama 17155, vllm 38441 and 38353"""
        for word in ("tool_calls", "tool_call"):
            message = self.message(tools=[TOOL], max_tokens=300, **forced(
                f"So. <|{word}_section_begin|><|tool_call_begin|>\nfunctions.f:0\n"
                f"<|tool_call_argument_begin|>{{}}<|tool_call_end|><|{word}_section_end|>"))
            self.assertEqual(message["content"], "So. ")
            self.assertEqual(message["tool_calls"][0]["id"], "functions.f:0")


class Coder(ReportCase):
    flags = ("--tool-call-parser", "qwen3_coder", "--reasoning-parser", "qwen3")
    types = {"s": "string", "i": "integer", "b": "boolean", "o": "object"}

    def arguments(self, **values):
        tool = {"type": "function", "function": {"name": "f", "parameters": {
            "type": "object", "properties": {name: {"type": kind} for name, kind in self.types.items()}}}}
        text = "".join(f"<parameter={name}>\n{value}\n</parameter>\n" for name, value in values.items())
        message = self.message(tools=[tool], max_tokens=300, **forced(
            f"<tool_call>\n<function=f>\n{text}</function>\n</tool_call>"))
        return json.loads(message["tool_calls"][0]["function"]["arguments"])

    def test_values_have_the_types_of_the_schema(self):
        """colibri 118, mlx-lm 1330, Megatron-LM 7320"""
        self.assertEqual(self.arguments(s="01234", i="42", b="true"),
                         {"s": "01234", "i": 42, "b": True})
        self.assertEqual(self.arguments(s="null", i="2026-01-15", b="maybe"),
                         {"s": "null", "i": "2026-01-15", "b": "maybe"})
        self.assertEqual(self.arguments(o="{'a': True}", s="<b>\n&amp;"),
                         {"o": {"a": True}, "s": "<b>\n&amp;"})

    def test_a_call_behind_an_empty_one(self):
        """vllm 47901"""
        call = "<tool_call>\n<function=f>\n{}</function>\n</tool_call>"
        text = call.format("") + call.format("<parameter=a>\nx\n</parameter>\n")
        events = self.post(CHAT, {"messages": door.USER, "tools": [TOOL], "max_tokens": 300,
                                  "stream": True, **forced(text)}).events
        arguments = ["", ""]
        for event in events:
            for piece in event["choices"][0]["delta"].get("tool_calls", []):
                arguments[piece["index"]] += piece["function"].get("arguments", "")
        self.assertEqual([json.loads(one) for one in arguments], [{}, {"a": "x"}])

    def test_a_call_within_a_thought(self):
        """vllm 16511 and 32216, and what vLLM's parser of Qwen3.5 does"""
        message = self.message(tools=[TOOL], max_tokens=300, **forced(
            "<think>So <tool_call>\n<function=f>\n</function>\n</tool_call>"))
        self.assertEqual(message["reasoning"], "So ")
        self.assertEqual(message["tool_calls"][0]["function"]["name"], "f")
        self.assertIsNone(message["content"])


class WithAKey(ReportCase):
    flags = ("--api-key", "k")

    def test_browsers_may_ask_first(self):
        """llama 6544 and 4198, ollama 4001, llamafile 600"""
        asked = {"Origin": "http://a.b", "Access-Control-Request-Method": "POST",
                 "Access-Control-Request-Headers": "authorization,content-type"}
        answer = self.send("OPTIONS", CHAT, headers=asked)
        self.assertEqual(answer.status, 204)
        self.assertEqual(answer.headers["Access-Control-Allow-Origin"], "*")
        self.assertIn("authorization", answer.headers["Access-Control-Allow-Headers"])
        answer = self.post(CHAT, {"messages": door.USER}, 401, headers={"Origin": "http://a.b"})
        self.assertEqual(answer.headers["Access-Control-Allow-Origin"], "*")


if __name__ == "__main__":
    door.main()
