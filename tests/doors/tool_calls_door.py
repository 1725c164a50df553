#!/usr/bin/env python3
"""Tool calls as each format writes them, through the program: what clients get is always JSON.

The bundled model is made to write the very text of a format by a choice with one alternative.
"""

import json

import door

TEMPLATES = door.ROOT / "tests" / "text" / "data" / "chat_templates"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
NAME = "get_weather"
ARGUMENTS = {"city": "Paris", "days": 3}
OBJECT = json.dumps({"name": NAME, "arguments": ARGUMENTS})
JSON = json.dumps(ARGUMENTS)
M3 = "]<]minimax[>["
PYTHON = "get_weather(city='Paris', days=3)"


def elements(section):
    return (f"<{section}>\n<function={NAME}>\n<parameter=city>\nParis\n</parameter>\n"
            f"<parameter=days>\n3\n</parameter>\n</function>\n</{section}>")


def invokes(prefix, begin, end):
    return (f"{begin}\n<{prefix}invoke name=\"{NAME}\">\n<{prefix}parameter name=\"city\">Paris"
            f"</{prefix}parameter>\n<{prefix}parameter name=\"days\">3</{prefix}parameter>\n"
            f"</{prefix}invoke>\n{end}")


# A text with one call in each format.
FORMATS = {
    "hermes": f"<tool_call>\n{OBJECT}\n</tool_call>",
    "longcat": f"<longcat_tool_call>{OBJECT}</longcat_tool_call>",
    "jamba": f"<tool_calls>[{OBJECT}]</tool_calls>",
    "internlm": f"<|action_start|><|plugin|>{OBJECT}<|action_end|>",
    "cohere_command3": f"<|START_ACTION|>[{OBJECT}]<|END_ACTION|>",
    "granite-20b-fc": f"<function_call> {OBJECT}",
    "granite": f"<|tool_call|>[{OBJECT}]",
    "phi4_mini_json": f"functools[{OBJECT}]",
    "xlam": f"[{OBJECT}]",
    "generic": f"<tool_call>{OBJECT}</tool_call>",
    "llama3_json": OBJECT,
    "mistral": f"[TOOL_CALLS]{NAME}{JSON}",
    "pythonic": f"[{PYTHON}]",
    "llama4_pythonic": f"<|python_start|>[{PYTHON}]<|python_end|>",
    "lfm2": f"<|tool_call_start|>[{PYTHON}]<|tool_call_end|>",
    "olmo3": f"<function_calls>\n{PYTHON}\n</function_calls>",
    "qwen3_coder": elements("tool_call"),
    "seed_oss": elements("seed:tool_call"),
    "step3": invokes("steptml:", "<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜>",
                     "<｜tool_call_end｜><｜tool_calls_end｜>"),
    "minimax_m2": invokes("", "<minimax:tool_call>", "</minimax:tool_call>"),
    "deepseek_v41": invokes("｜DSML｜ ", "<｜DSML｜ calls>", "</｜DSML｜ calls>"),
    "dots": invokes("", "<dots_function_call>", "</dots_function_call>"),
    "deepseek_v32": invokes("｜DSML｜", "<｜DSML｜function_calls>", "</｜DSML｜function_calls>"),
    "glm45": (f"<tool_call>{NAME}\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n"
              "<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>"),
    "deepseek_v3": (f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>{NAME}\n"
                    f"```json\n{JSON}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"),
    "kimi_k2": (f"<|tool_calls_section_begin|><|tool_call_begin|>functions.{NAME}:0"
                f"<|tool_call_argument_begin|>{JSON}<|tool_call_end|><|tool_calls_section_end|>"),
    "openai": (f"<|channel|>commentary to=functions.{NAME} <|constrain|>json<|message|>{JSON}"
               "<|call|>"),
    "inkling": (f"{NAME}<|content_invoke_tool_json|>{{\"name\": \"{NAME}\", \"args\": {JSON}}}"
                "<|end_message|>"),
    "muse_glimmer": (f" to={NAME}<|message|>"
                     + invokes("atem:", "<atem:function_calls>", "</atem:function_calls>")
                     + "<|eot|>"),
    "kimi_k3": (f"<|open|>tools<|sep|><|open|>call tool=\"{NAME}\" index=\"1\"<|sep|>"
                "<|open|>argument key=\"city\" type=\"string\"<|sep|>Paris<|close|>argument<|sep|>"
                "<|open|>argument key=\"days\" type=\"number\"<|sep|>3<|close|>argument<|sep|>"
                "<|close|>call<|sep|><|close|>tools<|sep|>"),
    "minimax_m3": (f"{M3}<tool_call>\n{M3}<invoke name=\"{NAME}\">{M3}<city>Paris{M3}</city>"
                   f"{M3}<days>3{M3}</days>{M3}</invoke>\n{M3}</tool_call>"),
    "hy_v3": (f"<tool_calls>\n<tool_call>{NAME}<tool_sep>\n<arg_key>city</arg_key>\n<arg_value>Paris"
              "</arg_value>\n<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>\n"
              "</tool_calls>"),
    "hy_v4": (f"<tool_calls:ab12>\n<tool_call:ab12>{NAME}<arg_key:ab12>city</arg_key:ab12>"
              "<arg_value:ab12>Paris</arg_value:ab12><arg_key:ab12>days</arg_key:ab12>"
              "<arg_value:ab12>3</arg_value:ab12></tool_call:ab12>\n</tool_calls:ab12>"),
    "k2_horizon": (f"<ifm|tool_calls>\n<ifm|tool_call>{NAME}<ifm|arg_key>city</ifm|arg_key>"
                   "<ifm|arg_value>Paris</ifm|arg_value><ifm|arg_key>days</ifm|arg_key>"
                   "<ifm|arg_value>3</ifm|arg_value></ifm|tool_call>\n</ifm|tool_calls>"),
    "minicpm5": (f"<function name=\"{NAME}\"><param name=\"city\"><![CDATA[Paris]]></param>"
                 "<param name=\"days\">3</param></function>"),
    "apertus": f"<|tools_prefix|>[{{\"{NAME}\": {JSON}}}]<|tools_suffix|>",
    "gigachat3": f"<|message_sep|>function call<|role_sep|>\n{OBJECT}",
    "gemma4": f"<|tool_call>call:{NAME}{{city:<|\"|>Paris<|\"|>,days:3}}<tool_call|>",
    "functiongemma": (f"<start_function_call>call:{NAME}{{city:<escape>Paris<escape>,days:3}}"
                      "<end_function_call>"),
}

# Broken texts, and the calls and the content that come of them.
BROKEN = {
    "hermes": [
        (f"<tool_call>\n{OBJECT[:-1]}\n</tool_call>", [(NAME, ARGUMENTS)], ""),
        ("<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1, oops}}</tool_call>",
         [("f", {"a": 1})], ""),
        ("<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": [\"x", [("f", {"a": ["x"]})], ""),
        ("Write <tool_call>no call</tool_call>.", [], "Write <tool_call>no call</tool_call>."),
    ],
    "qwen3_coder": [
        ("<tool_call>\n<function=f>\n<parameter=a>\nls\n</function>\n</tool_call>",
         [("f", {"a": "ls"})], ""),
        ("<tool_call>\n<function=f>\n<parameter=a>\nls", [("f", {"a": "ls"})], ""),
        ("<function=f>oops</function>", [("f", {})], ""),
    ],
}


def chat_tools():
    return [{"type": "function", "function": {"name": NAME, "parameters": SCHEMA}}]


class Calls:
    """What a client puts together: the calls' names and texts of arguments, and the content."""

    def __init__(self):
        self.calls = {}
        self.content = ""

    def add(self, key, name, arguments):
        call = self.calls.setdefault(key, ["", ""])
        call[0] += name or ""
        call[1] += arguments or ""

    def parsed(self):
        return [(name, json.loads(arguments)) for name, arguments in self.calls.values()]

    def texts(self):
        return list(self.calls.values()), self.content


class ToolCase(door.DoorCase):
    """Asks for a text that the model is made to write, by all APIs, whole and streamed."""

    folder = door.model_copy(**door.one_layer())
    model = folder.name

    def ask(self, path, text, body, stream, max_tokens):
        forced = {"structured_outputs": {"choice": [text]}} if text is not None else {}
        limit = "max_output_tokens" if "responses" in path else "max_tokens"
        return self.post(path, {"temperature": 0, limit: max_tokens, **forced, **body,
                                **({"stream": True} if stream else {})})

    def chat(self, text, stream, max_tokens=1024):
        answer = self.ask("/v1/chat/completions", text,
                          {"messages": door.USER, "tools": chat_tools(), "tool_choice": "auto"},
                          stream, max_tokens)
        got = Calls()
        if not stream:
            message = answer.json["choices"][0]["message"]
            got.content = message["content"] or ""
            for index, call in enumerate(message.get("tool_calls", [])):
                got.add(index, call["function"]["name"], call["function"]["arguments"])
            return got
        for event in answer.events:
            delta = event["choices"][0]["delta"] if event["choices"] else {}
            got.content += delta.get("content") or ""
            for call in delta.get("tool_calls", []):
                got.add(call["index"], call["function"].get("name"),
                        call["function"].get("arguments"))
        return got

    def response(self, text, stream, max_tokens=1024):
        tools = [{"type": "function", "name": NAME, "parameters": SCHEMA}]
        answer = self.ask("/v1/responses", text, {"input": "Hi", "tools": tools}, stream,
                          max_tokens)
        got = Calls()
        if not stream:
            for index, item in enumerate(answer.json["output"]):
                if item["type"] == "function_call":
                    got.add(index, item["name"], item["arguments"])
                if item["type"] == "message":
                    got.content += "".join(part["text"] for part in item["content"])
            return got
        for event in answer.events:
            if event["type"] == "response.output_item.added":
                if event["item"]["type"] == "function_call":
                    got.add(event["output_index"], event["item"]["name"], "")
            if event["type"] == "response.function_call_arguments.delta":
                got.add(event["output_index"], "", event["delta"])
            if event["type"] == "response.output_text.delta":
                got.content += event["delta"]
        return got

    def message(self, text, stream, max_tokens=1024):
        tools = [{"name": NAME, "input_schema": SCHEMA}]
        answer = self.ask("/v1/messages", text, {"messages": door.USER, "tools": tools}, stream,
                          max_tokens)
        got = Calls()
        if not stream:
            for index, block in enumerate(answer.json["content"]):
                if block["type"] == "tool_use":
                    got.add(index, block["name"], json.dumps(block["input"]))
                if block["type"] == "text":
                    got.content += block["text"]
            return got
        for event in answer.events:
            if event["type"] == "content_block_start":
                if event["content_block"]["type"] == "tool_use":
                    got.add(event["index"], event["content_block"]["name"], "")
            if event["type"] == "content_block_delta":
                if event["delta"]["type"] == "input_json_delta":
                    got.add(event["index"], "", event["delta"]["partial_json"])
                if event["delta"]["type"] == "text_delta":
                    got.content += event["delta"]["text"]
        return got

    def check(self, text, calls, content):
        for ask in (self.chat, self.response, self.message):
            whole, streamed = ask(text, False), ask(text, True)
            what = f"{ask.__name__} of {text!r}"
            self.assertEqual(whole.parsed(), calls, what)
            self.assertEqual(streamed.parsed(), calls, what)
            self.assertEqual(whole.content, content, what)
            self.assertEqual(streamed.content, content, what)


def check_format(parser):
    def run(self):
        text = FORMATS[parser]
        self.check(text, [(NAME, ARGUMENTS)], "")
        # Cut by the length, the arguments are an object still.
        for max_tokens in (24, 56):
            whole = self.chat(text, False, max_tokens)
            self.assertTrue(all(isinstance(call[1], dict) for call in whole.parsed()))
            self.assertEqual(self.chat(text, True, max_tokens).texts(), whole.texts())
        for broken, calls, content in BROKEN.get(parser, []):
            self.check(broken, calls, content)
    return run


def add_format_cases():
    for parser in FORMATS:
        name = "Format" + parser.title().replace("_", "").replace("-", "")
        globals()[name] = type(name, (ToolCase,), {
            "flags": ("--enable-auto-tool-choice", "--tool-call-parser", parser),
            "test_calls": check_format(parser)})


add_format_cases()


class WithoutFlags(ToolCase):
    """The bundled model's template cannot show tools: they are described."""

    def test_tools_are_taken(self):
        answer = self.post("/v1/chat/completions", {
            "messages": door.USER, "tools": chat_tools(), "tool_choice": "auto", "max_tokens": 4})
        self.assertEqual(len(answer.json["choices"]), 1)

    def test_the_prompt_names_them(self):
        ids = self.post("/tokenize", {"messages": door.USER, "tools": chat_tools()}).json["tokens"]
        prompt = self.post("/detokenize", {"tokens": ids}).json["prompt"]
        self.assertIn(NAME, prompt)
        self.assertIn("<tool_call>", prompt)

    def test_the_generic_form_is_found(self):
        self.check(FORMATS["generic"], [(NAME, ARGUMENTS)], "")
        self.check(OBJECT, [(NAME, ARGUMENTS)], "")

    def test_a_history_reaches_the_prompt(self):
        messages = [*door.USER, {"role": "assistant", "content": None, "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": NAME, "arguments": JSON}}]},
            {"role": "tool", "tool_call_id": "1", "content": "Sunny."}]
        ids = self.post("/tokenize", {"messages": messages, "tools": chat_tools()}).json["tokens"]
        prompt = self.post("/detokenize", {"tokens": ids}).json["prompt"]
        self.assertIn("Sunny.", prompt)
        self.assertIn("\"Paris\"", prompt)

    def test_a_forced_call_that_the_length_cuts(self):
        for choice in ("required", {"type": "function", "function": {"name": NAME}}):
            for max_tokens in (1, 4, 9, 16):
                answer = self.post("/v1/chat/completions", {
                    "messages": door.USER, "tools": chat_tools(), "tool_choice": choice,
                    "max_tokens": max_tokens, "temperature": 0}).json
                message = answer["choices"][0]["message"]
                self.assertFalse(message["content"], message)
                for call in message.get("tool_calls", []):
                    json.loads(call["function"]["arguments"])


class TurnedOff(ToolCase):
    flags = ("--tool-call-parser", "none")

    def test_the_error_says_so(self):
        answer = self.post("/v1/chat/completions", {
            "messages": door.USER, "tools": chat_tools(), "tool_choice": "auto"}, status=400)
        self.assertIn("--tool-call-parser none", answer.json["error"]["message"])


class ByTheTemplate(ToolCase):
    flags = ("--chat-template", str(TEMPLATES / "Qwen3-Coder.jinja"))

    def test_calls_are_found(self):
        self.check(FORMATS["qwen3_coder"], [(NAME, ARGUMENTS)], "")


class ReasoningByTheTemplate(ToolCase):
    flags = ("--chat-template", str(TEMPLATES / "Qwen-Qwen3-0.6B.jinja"))

    def test_reasoning_and_calls_are_found(self):
        text = f"<think>\nHm.\n</think>\n\n{FORMATS['hermes']}"
        self.check(text, [(NAME, ARGUMENTS)], "")
        answer = self.post("/v1/chat/completions", {
            "messages": door.USER, "structured_outputs": {"choice": ["<think>Hm.</think>Hello."]}})
        message = answer.json["choices"][0]["message"]
        self.assertEqual(message["content"], "Hello.")
        self.assertEqual(message["reasoning_content"], "Hm.")


class ReasoningStays(ToolCase):
    flags = (*ReasoningByTheTemplate.flags, "--reasoning-parser", "none")

    def test_in_the_content(self):
        answer = self.post("/v1/chat/completions", {
            "messages": door.USER, "structured_outputs": {"choice": ["<think>Hm.</think>Hello."]}})
        self.assertEqual(answer.json["choices"][0]["message"]["content"],
                         "<think>Hm.</think>Hello.")


if __name__ == "__main__":
    door.main()
