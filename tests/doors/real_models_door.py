#!/usr/bin/env python3
"""A chat with a real model: SmolLM2-135M-Instruct as it is published, through the official client.

Skipped (77) where the model is not there: `python3 tools/fetch_model.py smollm2` brings it, or
FORETOKEN_FETCH_MODELS=1 lets this door do so.
"""

import json
import os
import pathlib
import sys
import unittest

import door

sys.path.insert(0, str(door.ROOT / "tools"))

import fetch_model  # noqa: E402

DRAFTS = ("--speculative-config", json.dumps({"method": "ngram", "num_speculative_tokens": 4,
                                              "prompt_lookup_max": 4, "prompt_lookup_min": 1}))
LENGTH = ("--max-model-len", "1024")
# Texts that repeat themselves, so that drafts are accepted, and others.
QUESTIONS = ["What is 2 + 2?",
             "Repeat this sentence three times: The quick brown fox jumps over the lazy dog.",
             "Write the numbers from one to twenty as words.",
             "List five fruits and say for each of them what colour it has.",
             "Write a Python function that adds two numbers, and one that multiplies them."]
WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Tells the weather of a city", "parameters": {
        "type": "object", "properties": {
            "city": {"type": "string", "description": "Name of the city"},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}},
        "required": ["city", "unit"], "additionalProperties": False}}}


def model_file():
    """The model's path; ends the process with 77 where it cannot be had."""
    path = fetch_model.FOLDER / fetch_model.MODELS["smollm2"].file
    if path.is_file():
        return str(path)
    if os.environ.get("FORETOKEN_FETCH_MODELS") != "1":
        print(f"skipped: {path} is not there; python3 tools/fetch_model.py smollm2 fetches it, and "
              "FORETOKEN_REAL_MODELS names another folder")
        sys.exit(77)
    try:
        return str(fetch_model.fetch("smollm2", fetch_model.FOLDER))
    except (fetch_model.FetchError, OSError) as error:
        print(f"skipped: {error}")
        sys.exit(77)


MODEL = model_file()
door.use_clients("openai")

import openai  # noqa: E402


class RealCase(door.DoorCase):
    model = MODEL

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.client = openai.OpenAI(base_url=cls.url + "/v1", api_key="none", max_retries=0)
        cls.name = cls.client.models.list().data[0].id

    def ask(self, question, **more):
        more = {"temperature": 0, "max_tokens": 64, **more}
        return self.client.chat.completions.create(
            model=self.name, messages=[{"role": "user", "content": question}], **more)

    def answers(self, **more):
        return [self.ask(question, **more).choices[0].message.content for question in QUESTIONS]


class Chat(RealCase):
    flags = (*LENGTH, *DRAFTS)

    def test_it_can_add(self):
        answer = self.ask(QUESTIONS[0])
        self.assertIn("4", answer.choices[0].message.content)
        self.assertEqual(answer.choices[0].finish_reason, "stop")
        # The template puts a system prompt before the question.
        self.assertEqual(answer.usage.prompt_tokens, 38)

    def test_a_stream_has_the_same_words(self):
        whole = self.ask(QUESTIONS[2]).choices[0].message.content
        stream = self.ask(QUESTIONS[2], stream=True)
        self.assertEqual("".join(chunk.choices[0].delta.content or "" for chunk in stream), whole)

    def test_a_second_turn_knows_the_first(self):
        messages = [{"role": "user", "content": "My name is Ada. Please remember it."},
                    {"role": "assistant", "content": "Nice to meet you, Ada."},
                    {"role": "user", "content": "What is my name?"}]
        answer = self.client.chat.completions.create(model=self.name, messages=messages,
                                                     temperature=0, max_tokens=32)
        self.assertIn("Ada", answer.choices[0].message.content)

    def test_a_tool_is_called_in_the_generic_form(self):
        question = "What is the weather in Paris, in celsius?"
        for choice in ("required", {"type": "function", "function": {"name": "get_weather"}}):
            answer = self.ask(question, tools=[WEATHER], tool_choice=choice, max_tokens=128)
            calls = answer.choices[0].message.tool_calls
            self.assertTrue(calls, answer)
            self.assertEqual(calls[0].function.name, "get_weather")
            arguments = json.loads(calls[0].function.arguments)
            self.assertEqual(arguments["city"], "Paris")
            self.assertIn(arguments["unit"], ("celsius", "fahrenheit"))

    def test_a_schema_is_followed(self):
        schema = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 30},
                                                   "country": {"enum": ["France", "Spain"]}},
                  "required": ["city", "country"], "additionalProperties": False}
        answer = self.ask("In which country is Paris? Answer as JSON.", max_tokens=96,
                          response_format={"type": "json_schema",
                                           "json_schema": {"name": "place", "schema": schema}})
        self.assertEqual(json.loads(answer.choices[0].message.content)["country"], "France")

    def test_greedy_and_sampled_texts_are_those_without_drafts(self):
        sampled = {"temperature": 0.8, "top_p": 0.95, "seed": 7}
        with_drafts = [self.answers(), self.answers(**sampled)]
        accepted = sum(float(line.split()[-1]) for line in self.get("/metrics").text.splitlines()
                       if line.startswith("vllm:spec_decode_num_accepted_tokens_total"))
        self.assertGreater(accepted, 20)
        Plain.setUpClass()
        try:
            plain = Plain()
            self.assertEqual([plain.answers(), plain.answers(**sampled)], with_drafts)
        finally:
            Plain.tearDownClass()


class Plain(RealCase):
    """The same server without drafts; asked by the case above."""

    flags = LENGTH


class CommandLine(unittest.TestCase):
    def test_generate_applies_the_template(self):
        done = door.run_program("generate", "--model", MODEL, *LENGTH, "--chat", "--prompt",
                                QUESTIONS[0], "--max-tokens", "32", "--temperature", "0")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("4", done.stdout)
        self.assertEqual(done.stdout.split("\n")[0], "The answer to this classic math problem is 4.")


if __name__ == "__main__":
    assert pathlib.Path(MODEL).is_file()
    door.main()
