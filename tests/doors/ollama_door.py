#!/usr/bin/env python3
"""What clients of Ollama send: its packages, LangChain, open-webui, Continue, Home Assistant, codex."""

import json

import door

TOOLS = [{"type": "function", "function": {
    "name": "get_weather", "description": "The weather",
    "parameters": {"type": "object", "properties": {"city": {"enum": ["Paris"]}},
                   "required": ["city"]}}}]


def lines(answer):
    return [json.loads(line) for line in answer.text.splitlines()]


class Ollama(door.DoorCase):
    flags = ("--served-model-name", "tiny", "--tool-call-parser", "hermes",
             "--spec-method", "ngram", "--spec-tokens", "4")

    def ask(self, path, status=200, **more):
        body = {"model": "tiny:latest", "options": {"temperature": 0, "num_predict": 12}, **more}
        return self.post(path, body, status)

    def chat(self, status=200, **more):
        return self.ask("/api/chat", status, **{"messages": door.USER, **more})

    def test_streams_of_lines(self):
        answer = self.chat()
        self.assertEqual(answer.headers["Content-Type"], "application/x-ndjson")
        told = lines(answer)
        self.assertEqual([line["done"] for line in told], [False] * (len(told) - 1) + [True])
        last = told[-1]
        self.assertEqual(last["message"], {"role": "assistant", "content": ""})
        self.assertEqual((last["done_reason"], last["eval_count"]), ("length", 12))
        for name in ("total_duration", "load_duration", "prompt_eval_count",
                     "prompt_eval_duration", "eval_duration"):
            self.assertIsInstance(last[name], int)
        text = "".join(line["message"]["content"] for line in told)
        self.assertEqual(text, self.chat(stream=False).json["message"]["content"])
        openai = self.post("/v1/chat/completions", {
            "messages": door.USER, "temperature": 0, "max_tokens": 12}).json
        self.assertEqual(text, openai["choices"][0]["message"]["content"])

    def test_what_clients_always_send_is_no_warning(self):
        """open-webui, Home Assistant and Continue: settings of the loading, and of the context"""
        answer = self.chat(stream=False, keep_alive="5m", format="", tools=[], think=False,
                           truncate=True, shift=True,
                           options={"num_ctx": 2048, "num_predict": 2, "num_gpu": 1, "num_keep": 4,
                                    "num_thread": 2, "num_batch": 512, "use_mmap": True}).json
        self.assertNotIn("warnings", answer)
        more = self.chat(stream=False, options={"num_ctx": 10 ** 6, "num_predict": 2}).json
        self.assertIn("--max-model-len", more["warnings"][0])

    def test_prompts(self):
        whole = self.ask("/api/generate", prompt="Once upon a time", raw=True, stream=False).json
        told = lines(self.ask("/api/generate", prompt="Once upon a time", raw=True))
        self.assertEqual("".join(line["response"] for line in told), whole["response"])
        chat = self.ask("/api/generate", prompt=door.USER[0]["content"], stream=False).json
        self.assertEqual(chat["response"], self.chat(stream=False).json["message"]["content"])
        for more in ({"template": "{{ .Prompt }}"}, {"context": [1]}, {"images": ["aGk="]}):
            error = self.ask("/api/generate", 400, prompt="Hi", **more).json["error"]
            self.assertIn(next(iter(more)), error)

    def test_forms(self):
        schema = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"]}
        for path, text in (("/api/chat", lambda a: a["message"]["content"]),
                           ("/api/generate", lambda a: a["response"])):
            body = {"messages": door.USER} if path == "/api/chat" else {"prompt": "Hi"}
            answer = self.ask(path, stream=False, format=schema,
                              options={"temperature": 0, "num_predict": 60}, **body).json
            self.assertIn(json.loads(text(answer))["a"], (1, 2))

    def test_calls_and_results(self):
        answer = self.chat(tools=TOOLS, structured_outputs={"choice": [
            '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>']},
            options={"temperature": 0, "num_predict": 90})
        calls = [call for line in lines(answer) for call in line["message"].get("tool_calls", [])]
        self.assertEqual([call["function"]["arguments"] for call in calls], [{"city": "Paris"}])
        history = door.USER + [
            {"role": "assistant", "content": "", "thinking": "hm", "tool_calls": [
                {"function": {"name": "get_weather", "arguments": {"city": "Paris"}}}]},
            {"role": "tool", "content": "11 degrees", "tool_name": "get_weather"}]
        self.assertGreater(self.chat(messages=history, tools=TOOLS, stream=False).json[
            "prompt_eval_count"], 20)

    def test_log_probabilities(self):
        answer = self.chat(stream=False, logprobs=True, top_logprobs=2).json
        self.assertEqual(len(answer["logprobs"]), 12)
        self.assertEqual(len(answer["logprobs"][0]["top_logprobs"]), 2)
        raw = self.ask("/api/generate", prompt="Once", raw=True, stream=False, logprobs=True).json
        self.assertEqual(len(raw["logprobs"]), 12)

    def test_models(self):
        self.assertEqual([m["model"] for m in self.get("/api/tags").json["models"]], ["tiny"])
        running = self.get("/api/ps").json["models"][0]
        self.assertEqual((running["model"], running["context_length"]), ("tiny", 2048))
        self.assertIn("completion", self.ask("/api/show").json["capabilities"])
        self.assertEqual(self.ask("/api/pull").json, {"status": "success"})
        self.assertEqual(self.ask("/api/generate").json["done_reason"], "load")
        self.assertEqual(self.ask("/api/chat", keep_alive=0).json["done_reason"], "unload")
        for path in ("/api/chat", "/api/generate", "/api/show", "/api/pull"):
            self.assertIsInstance(self.ask(path, 404, model="llama3").json["error"], str)
        self.assertIn("start another", self.ask("/api/copy", 501).json["error"])
        self.assertIn("start another", self.send("DELETE", "/api/delete", {}).json["error"])

    def test_embeddings(self):
        openai = self.post("/v1/embeddings", {"input": ["a cat", "a dog"]}).json["data"]
        told = self.post("/api/embed", {"model": "tiny", "input": ["a cat", "a dog"]}).json
        self.assertEqual(told["embeddings"], [one["embedding"] for one in openai])
        old = self.post("/api/embeddings", {"model": "tiny", "prompt": "a cat"}).json
        self.assertEqual(old["embedding"], openai[0]["embedding"])

    def test_the_oldest_messages_of_a_long_chat_are_left_out(self):
        """LLMxRay 0.8.12, MandoCode 0.14.3: with Ollama a long chat is no error"""
        chat = [{"role": "system", "content": "You are a cat."}]
        for _ in range(12):
            chat += [{"role": "user", "content": "word " * 200}, {"role": "assistant", "content": "Yes."}]
        chat += door.USER
        body = {"stream": False, "options": {"num_predict": 6, "temperature": 0}}
        told = self.ask("/api/chat", messages=chat, **body).json
        self.assertGreater(told["prompt_eval_count"], 1000)
        self.assertLess(told["prompt_eval_count"], 2048)
        kept = [chat[0], *chat[-20:]]  # as many as leave room for an answer
        same = self.ask("/api/chat", messages=kept, truncate=False, **body).json
        self.assertEqual((same["prompt_eval_count"], same["message"]),
                         (told["prompt_eval_count"], told["message"]))
        self.assertIn("too long", self.ask("/api/chat", 400, messages=chat, truncate=False, **body)
                      .json["error"])

    def test_openais_form_at_its_address(self):
        """llama-server answers there as at /v1/chat/completions"""
        answer = self.post("/api/chat", {"messages": door.USER, "max_tokens": 2}).json
        self.assertEqual(answer["usage"]["completion_tokens"], 2)

    def test_errors_are_texts(self):
        for more in ({"messages": [{"role": "user", "content": "a", "images": ["aGk="]}]},
                     {"options": {"temperature": -1}},
                     {"messages": [{"role": "user", "content": "cat " * 3000}]}):
            answer = self.send("POST", "/api/chat",
                               {"model": "tiny", "messages": door.USER, **more})
            self.assertIn(answer.status, (400, 501))
            self.assertIsInstance(answer.json["error"], str)


class SilentStreams(door.DoorCase):
    flags = ("--sse-keep-alive-interval", "1")

    def test_no_comments_between_lines(self):
        answer = self.post("/api/chat", {"messages": door.USER, "options": {"num_predict": 200}})
        self.assertTrue(lines(answer)[-1]["done"])


if __name__ == "__main__":
    door.main()
