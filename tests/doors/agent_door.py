#!/usr/bin/env python3
"""A scripted agent of six answers (whole: twenty) through the official clients: the same conversation with and
without each drafter, greedy and seeded, streamed and whole; what came out is the history of more.

FORETOKEN_TEST_WHOLE_DOORS=1 runs all formats, clients, samplings and drafters with each other and
replays the conversations in all templates (about half an hour); otherwise they take turns.
"""

import json
import os
import re
import unittest

import door

door.use_clients("openai", "anthropic")

import anthropic  # noqa: E402
import openai  # noqa: E402

from tool_calls_door import ARGUMENTS, FORMATS, NAME, SCHEMA, TEMPLATES  # noqa: E402

HEADS = door.ROOT / "models"
METHODS = ["draft_model", "eagle", "eagle3", "mtp", "ngram"]
MODELS = {"draft_model": "draft", "eagle": "eagle", "eagle3": "eagle3", "mtp": "mtp"}
SAMPLINGS = [{"temperature": 0}, {"temperature": 0.8, "seed": 5}]
# Each drafter meets a format of its own, and the last one twice.
PARSERS = ["hermes", "qwen3_coder", "glm45", "kimi_k2", "openai", "deepseek_v3"]
# Strict about roles, and about ids.
REPLAYED = ["Qwen3.5-4B", "mistralai-Mistral-Nemo-Instruct-2407"]
WHOLE = os.environ.get("FORETOKEN_TEST_WHOLE_DOORS") == "1"
NUM_ROUNDS = 10 if WHOLE else 3  # a call and an answer in words each


def drafter(method):
    config = {"method": method, "num_speculative_tokens": 3, "length_policy": "fixed"}
    if method in MODELS:
        config["model"] = str(HEADS / f"foretoken-7m-{MODELS[method]}")
    return config


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
    """A server with a format of calls; conversations that came out of it go into `histories`."""

    histories = []

    def plain(self, kind, parser, sampling, stream=False):
        agent = kind(self.url, parser, stream, {**sampling, "speculative": {"enabled": False}})
        said = conversation(agent)
        self.assertEqual(said[0::2], [[(NAME, ARGUMENTS)]] * NUM_ROUNDS, parser)
        if kind is ChatAgent:
            self.histories.append((parser, agent.messages))
        return said

    def check_drafted(self, wanted, kind, parser, sampling, method, stream):
        said = conversation(kind(self.url, parser, stream,
                                 {**sampling, "speculative": {"method": method}}))
        self.assertEqual(said, wanted, f"{kind.__name__}, {parser}, {method}, {sampling}, {stream}")

    def check_agent(self, parser, method, number):
        """Chats under one sampling, messages under the other; parsers take turns."""
        for i, kind in enumerate((ChatAgent, MessagesAgent)):
            sampling = SAMPLINGS[(number + i) % len(SAMPLINGS)]
            plain = self.plain(kind, parser, sampling)
            self.check_drafted(plain, kind, parser, sampling, method, True)

    def check_all(self, parser, methods):
        """Each client under each sampling, streamed and whole, with and without each drafter."""
        for kind in (ChatAgent, MessagesAgent):
            for sampling in SAMPLINGS:
                plain = self.plain(kind, parser, sampling)
                self.assertEqual(self.plain(kind, parser, sampling, True), plain)
                for method in methods:
                    for stream in (False, True):
                        self.check_drafted(plain, kind, parser, sampling, method, stream)


class Replay(door.DoorCase):
    """What came out is a history that templates of others take."""

    template = None

    @classmethod
    def setUpClass(cls):
        if cls.template is None:
            raise unittest.SkipTest("the cases of the classes below")
        cls.flags = ("--chat-template", str(cls.template))
        super().setUpClass()

    def check_histories(self):
        self.assertTrue(AgentCase.histories)
        tools = [{"type": "function", "function": {"name": NAME, "parameters": SCHEMA}}]
        for parser, messages in AgentCase.histories:
            with self.subTest(parser):
                told = self.post("/tokenize", {"messages": messages, "tools": tools}).json
                prompt = self.post("/detokenize", {"tokens": told["tokens"]}).json["prompt"]
                for number in range(NUM_ROUNDS):
                    said = f"{number} degrees" in prompt
                    self.assertTrue(said or told.get("warnings"), f"{number}: {prompt[-400:]}")


def add_agents():
    """Classes run in the order of their names: replays come last."""
    for number, parser in enumerate(FORMATS if WHOLE else PARSERS):
        method = METHODS[number % len(METHODS)]
        groups = [METHODS[:4], METHODS[4:]] if WHOLE else [[method]]
        for part, methods in enumerate(groups):
            if WHOLE:
                def test(self, parser=parser, methods=methods):
                    self.check_all(parser, methods)
            else:
                def test(self, parser=parser, method=method, number=number):
                    self.check_agent(parser, method, number)
            name = f"Agent{part}" + re.sub("[^A-Za-z0-9]", "", parser.title())
            globals()[name] = type(name, (AgentCase,), {
                "flags": ("--tool-call-parser", parser, "--speculative-config",
                          json.dumps([drafter(one) for one in methods])),
                "test_" + "_".join(methods): test})
    every = sorted(TEMPLATES.glob("**/*.jinja"))
    for path in every if WHOLE else [TEMPLATES / f"{name}.jinja" for name in REPLAYED]:
        name = "Replay" + re.sub("[^A-Za-z0-9]", "", path.stem.title())
        globals()[name] = type(name, (Replay,), {
            "template": path, "test_histories": lambda self: self.check_histories()})


add_agents()


if __name__ == "__main__":
    door.main()
