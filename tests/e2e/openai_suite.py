#!/usr/bin/env python3
"""Drives `foretoken serve` with the official openai and anthropic packages.

openai_suite.py PROGRAM [VENV]: makes a virtual environment with requirements.txt where VENV has
none; ends with 77 (skipped) where pip cannot install them.
"""

import json
import pathlib
import sys
import unittest

from client_environment import enter_environment

PROGRAM = None


USER = [{"role": "user", "content": "Tell me a story about a cat."}]
TOOL = {"type": "function", "function": {
    "name": "get_weather", "description": "The weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string", "maxLength": 8}},
                   "required": ["city"], "additionalProperties": False}}}
SCHEMA = {"type": "object", "properties": {"age": {"type": "integer", "minimum": 0,
                                                   "maximum": 99}},
          "required": ["age"], "additionalProperties": False}


# The client has no argument for it.
GREEDY = {"temperature": 0}
SPECULATION = json.dumps({"method": "ngram", "num_speculative_tokens": 3,
                          "length_policy": "fixed"})


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        import anthropic
        import openai

        from server_process import Server
        cls.server = Server(PROGRAM, "--served-model-name", "tiny", "alias", "--api-key", "secret",
                            "--enable-auto-tool-choice", "--tool-call-parser", "hermes",
                            "--speculative-config", SPECULATION,
                            "--enable-request-id-headers")
        cls.server.__enter__()
        cls.client = openai.OpenAI(base_url=cls.server.url + "/v1", api_key="secret",
                                   max_retries=0)
        cls.claude = anthropic.Anthropic(base_url=cls.server.url, api_key="secret", max_retries=0)
        cls.openai = openai
        cls.anthropic = anthropic

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None, None, None)

    def skip_without_grammars(self, error):
        if "not built yet" in str(error):
            self.skipTest("the engine has no grammars yet")
        raise error


class OpenAi(Case):
    def test_models(self):
        self.assertEqual([model.id for model in self.client.models.list()], ["tiny", "alias"])
        self.assertEqual(self.client.models.retrieve("alias").id, "alias")
        with self.assertRaises(self.openai.NotFoundError):
            self.client.models.retrieve("nope")

    def test_chat_whole_and_streamed_say_the_same(self):
        fields = dict(model="tiny", messages=USER, max_completion_tokens=30, temperature=0)
        whole = self.client.chat.completions.create(**fields)
        text, usage = "", None
        for chunk in self.client.chat.completions.create(
                **fields, stream=True, stream_options={"include_usage": True}):
            usage = chunk.usage or usage
            for choice in chunk.choices:
                text += choice.delta.content or ""
        self.assertEqual(text, whole.choices[0].message.content)
        self.assertEqual(usage.completion_tokens, whole.usage.completion_tokens)
        self.assertEqual(usage.prompt_tokens, whole.usage.prompt_tokens)

    def test_speculation_changes_nothing_but_the_counts(self):
        fields = dict(model="tiny", messages=USER, max_tokens=60, seed=7)
        on = self.client.chat.completions.create(**fields)
        off = self.client.chat.completions.create(
            **fields, extra_body={"speculative": {"enabled": False}})
        self.assertEqual(on.choices[0].message.content, off.choices[0].message.content)
        self.assertIsNone(off.usage.completion_tokens_details)

    def test_logprobs_and_choices(self):
        answer = self.client.chat.completions.create(
            model="tiny", messages=USER, max_tokens=5, n=3, seed=1, logprobs=True, top_logprobs=2)
        self.assertEqual([choice.index for choice in answer.choices], [0, 1, 2])
        for choice in answer.choices:
            for token in choice.logprobs.content:
                self.assertEqual(len(token.top_logprobs), 2)
                self.assertLessEqual(token.logprob, 0)
                self.assertEqual(bytes(token.bytes).decode(errors="replace"), token.token)

    def test_completions(self):
        answer = self.client.completions.create(
            model="tiny", prompt=["Once upon a time", [2307, 3]], max_tokens=4, echo=True,
            logprobs=1)
        self.assertEqual(len(answer.choices), 2)
        self.assertTrue(answer.choices[0].text.startswith("Once upon a time"))
        self.assertIsNone(answer.choices[0].logprobs.token_logprobs[0])
        text = "".join(chunk.choices[0].text for chunk in self.client.completions.create(
            model="tiny", prompt="Once upon a time", max_tokens=9, temperature=0, stream=True))
        whole = self.client.completions.create(model="tiny", prompt="Once upon a time",
                                               max_tokens=9, temperature=0)
        self.assertEqual(text, whole.choices[0].text)

    def test_stop(self):
        answer = self.client.completions.create(model="tiny", prompt="Once upon a time",
                                                max_tokens=50, temperature=0, stop=["."])
        self.assertEqual(answer.choices[0].finish_reason, "stop")
        self.assertNotIn(".", answer.choices[0].text)

    def test_embeddings(self):
        plain = self.client.embeddings.create(model="tiny", input=["a cat", "a dog"],
                                              encoding_format="float")
        packed = self.client.embeddings.create(model="tiny", input=["a cat", "a dog"])
        self.assertEqual(len(plain.data), 2)
        self.assertAlmostEqual(sum(x * x for x in plain.data[0].embedding), 1, places=4)
        for a, b in zip(plain.data[1].embedding, packed.data[1].embedding):
            self.assertAlmostEqual(a, b, places=6)

    def test_errors(self):
        with self.assertRaises(self.openai.BadRequestError) as caught:
            self.client.chat.completions.create(model="tiny", messages=USER, temperature=-1)
        self.assertIn("temperature", caught.exception.message)
        self.assertEqual(caught.exception.type, "BadRequestError")
        with self.assertRaises(self.openai.NotFoundError):
            self.client.chat.completions.create(model="other", messages=USER)
        stranger = self.client.with_options(api_key="wrong")
        with self.assertRaises(self.openai.AuthenticationError):
            stranger.models.list()

    def test_an_unknown_field_is_passed_over_with_a_warning(self):
        answer = self.client.chat.completions.create(model="tiny", messages=USER, max_tokens=2,
                                                     extra_body={"temprature": 1})
        self.assertIn("did you mean 'temperature'?", answer.model_extra["warnings"][0])

    def test_forced_tool_call(self):
        try:
            answer = self.client.chat.completions.create(
                model="tiny", messages=USER, max_tokens=100, tools=[TOOL], temperature=0,
                tool_choice={"type": "function", "function": {"name": "get_weather"}})
        except self.openai.APIStatusError as error:
            self.skip_without_grammars(error)
        call = answer.choices[0].message.tool_calls[0]
        self.assertEqual(call.function.name, "get_weather")
        self.assertIn("city", json.loads(call.function.arguments))

    def test_required_tool_call_streams(self):
        name, arguments, reason = "", "", None
        try:
            for chunk in self.client.chat.completions.create(
                    model="tiny", messages=USER, max_tokens=100, tools=[TOOL], temperature=0,
                    tool_choice="required", parallel_tool_calls=False, stream=True):
                choice = chunk.choices[0]
                for call in choice.delta.tool_calls or []:
                    name += call.function.name or ""
                    arguments += call.function.arguments or ""
                reason = choice.finish_reason or reason
        except self.openai.APIError as error:
            self.skip_without_grammars(error)
        self.assertEqual((name, reason), ("get_weather", "tool_calls"))
        self.assertIn("city", json.loads(arguments))

    def test_json_schema(self):
        try:
            answer = self.client.chat.completions.create(
                model="tiny", messages=USER, max_tokens=60,
                response_format={"type": "json_schema",
                                 "json_schema": {"name": "n", "schema": SCHEMA, "strict": True}})
        except self.openai.APIStatusError as error:
            self.skip_without_grammars(error)
        self.assertIn("age", json.loads(answer.choices[0].message.content))

    def test_responses(self):
        first = self.client.responses.create(model="tiny", input="Hi", max_output_tokens=12,
                                             temperature=0)
        self.assertTrue(first.output_text)
        self.assertEqual(self.client.responses.retrieve(first.id).output_text, first.output_text)
        second = self.client.responses.create(model="tiny", input="And?", max_output_tokens=5,
                                              previous_response_id=first.id)
        self.assertGreater(second.usage.input_tokens, first.usage.input_tokens)
        types, text = [], ""
        for event in self.client.responses.create(model="tiny", input="Hi", max_output_tokens=12,
                                                  temperature=0, stream=True):
            types.append(event.type)
            if event.type == "response.output_text.delta":
                text += event.delta
        self.assertEqual(text, first.output_text)
        self.assertEqual(types[:2], ["response.created", "response.in_progress"])
        self.assertIn(types[-1], ("response.completed", "response.incomplete"))

    def test_background_responses(self):
        queued = self.client.responses.create(model="tiny", input="Hi", max_output_tokens=800,
                                              background=True, extra_body={"ignore_eos": True})
        self.assertEqual(queued.status, "queued")
        self.assertEqual(self.client.responses.cancel(queued.id).status, "cancelled")
        self.assertEqual(self.client.responses.retrieve(queued.id).status, "cancelled")
        self.client.responses.delete(queued.id)
        with self.assertRaises(self.openai.NotFoundError):
            self.client.responses.retrieve(queued.id)

    def test_batches_of_chats(self):
        chats = [USER, [{"role": "user", "content": "And?"}]]
        answer = self.client.post("/chat/completions/batch", cast_to=object,
                                  body={"messages": chats, "max_tokens": 4, **GREEDY})
        for index, chat in enumerate(chats):
            alone = self.client.chat.completions.create(model="tiny", messages=chat, max_tokens=4,
                                                        temperature=0)
            self.assertEqual(answer["choices"][index]["message"]["content"],
                             alone.choices[0].message.content)


class Anthropic(Case):
    def test_message_whole_and_streamed_say_the_same(self):
        fields = dict(model="tiny", max_tokens=20, extra_body=GREEDY, system="Be kind.",
                      messages=USER)
        whole = self.claude.messages.create(**fields)
        self.assertEqual(whole.content[0].type, "text")
        with self.claude.messages.stream(**fields) as stream:
            text = "".join(stream.text_stream)
            final = stream.get_final_message()
        self.assertEqual(text, whole.content[0].text)
        self.assertEqual(final.stop_reason, whole.stop_reason)
        self.assertEqual(final.usage.output_tokens, whole.usage.output_tokens)

    def test_stop_sequences(self):
        answer = self.claude.messages.create(model="tiny", max_tokens=200, extra_body=GREEDY,
                                             messages=USER, stop_sequences=["."])
        self.assertEqual((answer.stop_reason, answer.stop_sequence), ("stop_sequence", "."))

    def test_count_tokens(self):
        count = self.claude.messages.count_tokens(model="tiny", messages=USER)
        answer = self.claude.messages.create(model="tiny", max_tokens=1, messages=USER)
        usage = answer.usage
        self.assertEqual(count.input_tokens, usage.input_tokens + usage.cache_read_input_tokens)

    def test_tools(self):
        tool = {"name": "get_weather", "input_schema": TOOL["function"]["parameters"]}
        try:
            answer = self.claude.messages.create(
                model="tiny", max_tokens=100, extra_body=GREEDY, messages=USER, tools=[tool],
                tool_choice={"type": "tool", "name": "get_weather"})
        except self.anthropic.APIStatusError as error:
            self.skip_without_grammars(error)
        self.assertEqual(answer.content[0].type, "tool_use")
        self.assertIn("city", answer.content[0].input)
        self.assertEqual(answer.stop_reason, "tool_use")

    def test_errors(self):
        with self.assertRaises(self.anthropic.NotFoundError) as caught:
            self.claude.messages.create(model="nope", max_tokens=1, messages=USER)
        self.assertEqual(caught.exception.body["error"]["type"], "not_found_error")
        with self.assertRaises(self.anthropic.BadRequestError):
            self.claude.messages.create(model="tiny", max_tokens=0, messages=USER)
        # Refused before any handler.
        stranger = self.claude.with_options(api_key="wrong")
        with self.assertRaises(self.anthropic.AuthenticationError) as caught:
            stranger.messages.create(model="tiny", max_tokens=1, messages=USER)
        self.assertEqual(caught.exception.body["type"], "error")
        self.assertEqual(caught.exception.body["error"]["type"], "authentication_error")


if __name__ == "__main__":
    PROGRAM = sys.argv[1]
    enter_environment(pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "build/e2e-venv"))
    unittest.main(argv=[sys.argv[0]], verbosity=1)
