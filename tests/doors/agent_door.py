#!/usr/bin/env python3
"""A scripted agent of twenty answers through the official clients: the same conversation with and
without each drafter, greedy and seeded, streamed and whole."""

import json

import door

door.use_clients("openai", "anthropic")

import anthropic  # noqa: E402
import openai  # noqa: E402

from tool_calls_door import ARGUMENTS, FORMATS, NAME, SCHEMA  # noqa: E402

NUM_ROUNDS = 10  # a call and an answer in words each
HEADS = door.ROOT / "models"
METHODS = ["draft_model", "eagle", "eagle3", "mtp", "ngram"]
MODELS = {"draft_model": "draft", "eagle": "eagle", "eagle3": "eagle3", "mtp": "mtp"}
SAMPLINGS = [{"temperature": 0}, {"temperature": 0.8, "seed": 5}]
# Each drafter meets a format of its own, and the last one twice.
PARSERS = ["hermes", "qwen3_coder", "glm45", "kimi_k2", "openai", "deepseek_v3"]


def drafter(method):
    config = {"method": method, "num_speculative_tokens": 3, "length_policy": "fixed"}
    if method in MODELS:
        config["model"] = str(HEADS / f"foretoken-7m-{MODELS[method]}")
    return json.dumps(config)


class ChatAgent:
    """A conversation by OpenAI's chats."""

    def __init__(self, url, parser, stream, fields):
        self.client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
        self.parser, self.stream, self.fields = parser, stream, fields
        self.messages = [dict(message) for message in door.USER]

    def ask(self, forced, limit):
        tools = [{"type": "function", "function": {"name": NAME, "parameters": SCHEMA}}]
        sampling = {key: value for key, value in self.fields.items() if key != "speculative"}
        extra = {"speculative": self.fields["speculative"], **forced}
        answer = self.client.chat.completions.create(
            model="", messages=self.messages, tools=tools, max_tokens=limit, extra_body=extra,
            stream=self.stream, **sampling)
        if not self.stream:
            message = answer.choices[0].message
            return message.content, [(call.function.name, call.function.arguments, call.id)
                                     for call in message.tool_calls or []]
        content, calls = "", {}
        for chunk in answer:
            delta = chunk.choices[0].delta if chunk.choices else None
            content += (delta.content or "") if delta else ""
            for piece in (delta.tool_calls or []) if delta else []:
                call = calls.setdefault(piece.index, ["", "", ""])
                call[0] += piece.function.name or ""
                call[1] += piece.function.arguments or ""
                call[2] += piece.id or ""
        return content or None, [tuple(call) for call in calls.values()]

    def call(self, text):
        _, calls = self.ask({"structured_outputs": {"choice": [text]}}, 512)
        self.messages.append({"role": "assistant", "content": None, "tool_calls": [
            {"id": key, "type": "function", "function": {"name": name, "arguments": arguments}}
            for name, arguments, key in calls]})
        return [(name, json.loads(arguments)) for name, arguments, _ in calls]

    def result(self, text):
        call = self.messages[-1]["tool_calls"][0]
        self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})

    def words(self):
        content, calls = self.ask({}, 8)
        self.messages.append({"role": "assistant", "content": content or "."})
        self.messages.append({"role": "user", "content": "And then?"})
        return content, [call[0] for call in calls]


class MessagesAgent:
    """A conversation by Anthropic's messages."""

    def __init__(self, url, parser, stream, fields):
        self.client = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)
        self.parser, self.stream, self.fields = parser, stream, fields
        self.messages = [dict(message) for message in door.USER]

    def ask(self, forced, limit):
        arguments = {"model": "", "messages": self.messages, "max_tokens": limit,
                     "extra_body": {**self.fields, **forced}, "tools": [{"name": NAME, "input_schema": SCHEMA}]}
        if not self.stream:
            return self.client.messages.create(**arguments)
        with self.client.messages.stream(**arguments) as stream:
            return stream.get_final_message()

    def call(self, text):
        answer = self.ask({"structured_outputs": {"choice": [text]}}, 512)
        self.messages.append({"role": "assistant", "content": [
            block.model_dump(exclude_none=True) for block in answer.content]})
        return [(block.name, block.input) for block in answer.content if block.type == "tool_use"]

    def result(self, text):
        used = [part for part in self.messages[-1]["content"] if part["type"] == "tool_use"]
        self.messages.append({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": used[0]["id"], "content": text}]})

    def words(self):
        answer = self.ask({}, 8)
        text = "".join(block.text for block in answer.content if block.type == "text")
        self.messages.append({"role": "assistant", "content": text or "."})
        self.messages.append({"role": "user", "content": "And then?"})
        return text, [block.name for block in answer.content if block.type == "tool_use"]


def conversation(agent):
    """Twenty answers: calls with their arguments, and what was said after each result."""
    said = []
    for number in range(NUM_ROUNDS):
        said.append(agent.call(FORMATS[agent.parser]))
        agent.result(f"{number} degrees")
        said.append(agent.words())
    return said


class AgentCase(door.DoorCase):
    def check_agent(self, parser, method, number):
        """Chats under one sampling, messages under the other; parsers take turns."""
        for i, kind in enumerate((ChatAgent, MessagesAgent)):
            sampling = SAMPLINGS[(number + i) % len(SAMPLINGS)]
            plain = conversation(kind(self.url, parser, False,
                                      {**sampling, "speculative": {"enabled": False}}))
            drafted = conversation(kind(self.url, parser, True,
                                        {**sampling, "speculative": {"method": method}}))
            self.assertEqual(plain[0::2], [[(NAME, ARGUMENTS)]] * NUM_ROUNDS)
            self.assertEqual(drafted, plain, f"{kind.__name__}, {method}, {sampling}")


def agent_check(parser, method, number):
    return lambda self: self.check_agent(parser, method, number)


for number, parser_name in enumerate(PARSERS):
    method_name = METHODS[number % len(METHODS)]
    class_name = "Agent" + parser_name.title().replace("_", "")
    globals()[class_name] = type(class_name, (AgentCase,), {
        "flags": ("--tool-call-parser", parser_name, "--speculative-config", drafter(method_name)),
        f"test_{method_name}": agent_check(parser_name, method_name, number)})


if __name__ == "__main__":
    door.main()
