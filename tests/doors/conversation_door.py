#!/usr/bin/env python3
"""How conversations of agents become prompts, with templates as they were published."""

import json
import os
import pathlib
import tempfile
import unittest

import door

TEMPLATES = door.ROOT / "tests" / "text" / "data" / "chat_templates"
TOOLS = [{"type": "function", "function": {
    "name": "weather_of_place", "description": "Tells the weather", "parameters": {
        "type": "object", "properties": {"place": {"type": "string", "description": "Where"}}}}}]
ASK = {"role": "user", "content": "askWords of the user"}
TOLD = {"role": "assistant", "content": "toldWords of the answer"}
MORE = {"role": "user", "content": "moreWords of the user"}
ABSENT = object()


def called(arguments='{"place": "placeWords"}', content=None, ids=("call_A1b2C3d4E5f6",), **more):
    """An answer with a call for each of `ids`."""
    turn = {"role": "assistant", "content": content, **more, "tool_calls": [
        {"id": one, "type": "function",
         "function": {"name": "weather_of_place", "arguments": arguments}} for one in ids]}
    if content is ABSENT:
        del turn["content"]
    return turn


def result(content="resultWords of the tool", one="call_A1b2C3d4E5f6"):
    return {"role": "tool", "tool_call_id": one, "content": content}


def parts(*texts):
    return [{"type": "text", "text": text} for text in texts]


# Messages and the words that the prompt must hold; each with tools.
AGENTS = {
    "null content": ([ASK, called(), result()], "askWords placeWords resultWords"),
    "no content": ([ASK, called(content=ABSENT), result()], "askWords placeWords resultWords"),
    "empty content": ([ASK, called(content=""), result()], "askWords placeWords resultWords"),
    "reasoning": ([ASK, called(reasoning_content="hm"), result(), TOLD, MORE],
                  "askWords placeWords resultWords toldWords moreWords"),
    "empty arguments": ([ASK, called(""), result()], "askWords weather_of_place resultWords"),
    "null arguments": ([ASK, called(None), result()], "askWords weather_of_place resultWords"),
    "broken arguments": ([ASK, called('{"a": "brokenWords'), result(), TOLD, MORE],
                         "brokenWords resultWords moreWords"),
    "a list of arguments": ([ASK, called("[1, 2]"), result()], "askWords resultWords"),
    "an object of arguments": ([ASK, called({"place": "placeWords"}), result()], "placeWords"),
    "parts": ([ASK, called(), result(parts("resultWords", "partWords"))], "resultWords partWords"),
    "no result": ([ASK, called(), result(None)], "askWords placeWords"),
    "parallel": ([ASK, called(ids=("call_A1b2C3d4E5f6", "call_B1b2C3d4E5f6")), result(),
                  result("secondWords", "call_B1b2C3d4E5f6")], "resultWords secondWords"),
    "interrupted": ([ASK, called(), result(), MORE], "placeWords resultWords moreWords"),
}
# The same without tools.
CHATS = {
    "developer": ([{"role": "developer", "content": "systemWords"}, ASK], "systemWords askWords"),
    "two systems": ([{"role": "system", "content": "systemWords"},
                     {"role": "system", "content": "otherWords"}, ASK],
                    "systemWords otherWords askWords"),
    "late system": ([ASK, TOLD, {"role": "system", "content": "lateWords"}, MORE],
                    "askWords lateWords moreWords"),
    "system parts": ([{"role": "system", "content": parts("systemWords")}, ASK],
                     "systemWords askWords"),
    "two questions": ([ASK, MORE], "askWords moreWords"),
    "thoughts alone": ([ASK, {"role": "assistant", "content": None, "reasoning_content": "hm"},
                        MORE], "askWords moreWords"),
}


class Prompts(door.DoorCase):
    """Reads prompts back through /tokenize and /detokenize."""

    shallow = door.model_copy(**door.one_layer())
    model = shallow.name

    def prompt(self, messages, **more):
        ids = self.post("/tokenize", {"messages": messages, **more}).json["tokens"]
        return self.post("/detokenize", {"tokens": ids}).json["prompt"]

    def check(self, cases, **more):
        for name, (messages, words) in cases.items():
            with self.subTest(name):
                text = self.prompt(messages, **more)
                for word in words.split():
                    self.assertIn(word, text)
                answer = self.post("/v1/chat/completions", {
                    "messages": messages, "max_tokens": 1, "temperature": 0, **more}).json
                self.assertEqual(len(answer["choices"]), 1, answer)


class OfATemplate(Prompts):
    """All cases with a template that --chat-template names."""

    template = None

    @classmethod
    def setUpClass(cls):
        if cls.template is None:
            raise unittest.SkipTest("the cases of the classes below")
        cls.flags = ("--chat-template", str(TEMPLATES / (cls.template + ".jinja")))
        super().setUpClass()

    def test_agents(self):
        self.check(AGENTS, tools=TOOLS, tool_choice="auto")

    def test_chats(self):
        self.check(CHATS)


class Qwen35(OfATemplate):
    template = "Qwen3.5-4B"


class MistralNemo(OfATemplate):
    template = "mistralai-Mistral-Nemo-Instruct-2407"


class MistralSmall(OfATemplate):
    template = "Mistral-Small-3.2-24B-Instruct-2506"


class Llama32(OfATemplate):
    template = "meta-llama-Llama-3.2-3B-Instruct"


class Gemma2(OfATemplate):
    template = "google-gemma-2-2b-it"


class GptOss(OfATemplate):
    template = "openai-gpt-oss-120b"


class DeepSeek(OfATemplate):
    template = "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B"


class Protocols(Prompts):
    """The other protocols' second turns, with a strict template."""

    flags = ("--chat-template", str(TEMPLATES / "Qwen3.5-4B.jinja"))

    def test_responses(self):
        answer = self.post("/v1/responses", {"max_output_tokens": 1, "input": [
            {"role": "developer", "content": "systemWords"}, ASK,
            {"type": "function_call", "call_id": "1", "name": "weather_of_place", "arguments": ""},
            {"type": "function_call_output", "call_id": "1", "output": "resultWords"},
            {"role": "developer", "content": "lateWords"}, MORE]}).json
        self.assertEqual(answer["object"], "response", answer)

    def test_messages(self):
        answer = self.post("/v1/messages", {"max_tokens": 1, "system": "systemWords", "messages": [
            ASK, {"role": "assistant", "content": [
                {"type": "tool_use", "id": "1", "name": "weather_of_place", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "1", "content": parts("resultWords")}]}]}).json
        self.assertEqual(answer["type"], "message", answer)


PLAIN = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}plainTemplate"
WITH_TOOLS = ("{% for t in tools %}{{ t.function.name }}{% endfor %}"
              "{% for m in messages %}<{{ m.role }}>{{ m.content or '' }}"
              "{% for c in m.tool_calls or [] %}{{ c.function | tojson }}{% endfor %}{% endfor %}"
              "toolTemplate")


class NamedTemplates(Prompts):
    """additional_chat_templates/ beside chat_template.jinja."""

    @classmethod
    def setUpClass(cls):
        cls.folder = door.model_copy(chat_template__jinja=PLAIN)
        named = pathlib.Path(cls.folder.name) / "additional_chat_templates"
        named.mkdir()
        (named / "tool_use.jinja").write_text(WITH_TOOLS, encoding="utf-8")
        cls.model = cls.folder.name
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    def test_tools_get_theirs(self):
        self.assertTrue(self.prompt([ASK]).endswith("plainTemplate"))
        text = self.prompt([ASK, called(), result()], tools=TOOLS, tool_choice="auto")
        self.assertTrue(text.endswith("toolTemplate"), text)
        self.assertIn("weather_of_place", text)


class ListOfTemplates(NamedTemplates):
    """The list form of chat_template in tokenizer_config.json."""

    @classmethod
    def setUpClass(cls):
        config = json.loads((pathlib.Path(door.BUNDLED) / "tokenizer_config.json").read_text("utf-8"))
        config["chat_template"] = [{"name": "default", "template": PLAIN},
                                   {"name": "tool_use", "template": WITH_TOOLS}]
        cls.folder = door.model_copy(tokenizer_config__json=config)
        cls.model = cls.folder.name
        Prompts.setUpClass.__func__(cls)


class GgufTemplates(NamedTemplates):
    """The same from a GGUF file that was made of such a folder."""

    flags = ("--enable-tokenizer-info-endpoint",)

    @classmethod
    def setUpClass(cls):
        ListOfTemplates.setUpClass.__func__(cls)
        Prompts.tearDownClass.__func__(cls)
        holder = tempfile.TemporaryDirectory()
        cls.model = os.path.join(holder.name, "model.gguf")
        made = door.run_program("convert", cls.folder.name, "--type", "f32", "-o", cls.model)
        if made.returncode != 0:
            raise RuntimeError(made.stderr)
        cls.folder.cleanup()
        cls.folder = holder
        Prompts.setUpClass.__func__(cls)

    def test_what_lm_evals_remote_tokenizer_asks_for(self):
        info = self.get("/tokenizer_info").json
        self.assertEqual((info["chat_template"], info["eos_token"]), (PLAIN, "<|endoftext|>"))
        self.assertIn("tokenizer_class", info)


class TheCommandLineWins(NamedTemplates):
    flags = ("--enable-tokenizer-info-endpoint",
             "--chat-template", "{% for m in messages %}{{ m.content }}{% endfor %}givenTemplate")

    def test_tools_get_theirs(self):
        text = self.prompt([ASK], tools=TOOLS, tool_choice="auto")
        self.assertTrue(text.endswith("givenTemplate"), text)
        self.assertEqual(self.get("/tokenizer_info").json["chat_template"], self.flags[-1])


if __name__ == "__main__":
    door.main()
