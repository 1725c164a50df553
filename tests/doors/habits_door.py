#!/usr/bin/env python3
"""What clients are used to from other servers: names of models, seeds, answers that go on, choices
among tools, and the paths of services."""

import door

CHAT = "/v1/chat/completions"
TOOLS = [{"type": "function", "function": {"name": name, "parameters": {
    "type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}}}
    for name in ("walk", "sleep")]
STARTED = [*door.USER, {"role": "assistant", "content": "Once upon"}]


def allowed(mode, *names):
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [
        {"type": "function", "function": {"name": name}} for name in names]}}


class Chats(door.DoorCase):
    flags = ("--max-model-len", "1024")

    def chat(self, status=200, **more):
        return self.post(CHAT, {"messages": door.USER, "temperature": 0, "max_tokens": 12, **more},
                         status).json

    def text(self, **more):
        return self.chat(**more)["choices"][0]["message"]["content"]

    def test_an_answer_without_calls_has_no_list_of_them(self):
        for more in ({}, {"tools": TOOLS}):
            self.assertNotIn("tool_calls", self.chat(**more)["choices"][0]["message"])

    def test_every_number_of_64_bits_is_a_seed(self):
        def drawn(seed):
            return self.text(temperature=1, seed=seed, max_tokens=24)

        seeds = [-2, -7, 7, -(2 ** 63), 2 ** 63 - 1]
        texts = [drawn(seed) for seed in seeds]
        self.assertEqual(texts, [drawn(seed) for seed in seeds])
        self.assertEqual(len(set(texts)), len(seeds))
        self.assertNotIn("seed", self.chat(seed=-1).get("warnings", []))
        self.chat(seed=2 ** 64, status=400)

    def test_an_answer_that_was_begun_goes_on(self):
        wanted = self.text(messages=STARTED, continue_final_message=True)
        self.assertNotEqual(wanted, self.text(messages=STARTED))
        for name in ("prefix", "partial"):
            begun = [*door.USER, {**STARTED[1], name: True}]
            self.assertEqual(self.text(messages=begun), wanted)
            begun[1][name] = False
            self.assertNotEqual(self.text(messages=begun), wanted)

    def test_any_of_the_tools(self):
        message = self.chat(tools=TOOLS, tool_choice="any", max_tokens=60)["choices"][0]["message"]
        self.assertIn(message["tool_calls"][0]["function"]["name"], ("walk", "sleep"))
        self.chat(tool_choice="any", status=400)

    def test_tools_that_are_allowed(self):
        for name in ("walk", "sleep"):
            message = self.chat(tools=TOOLS, tool_choice=allowed("required", name), max_tokens=60,
                                parallel_tool_calls=False)["choices"][0]["message"]
            self.assertEqual([call["function"]["name"] for call in message["tool_calls"]], [name])
        length = self.chat(tools=TOOLS[:1])["usage"]["prompt_tokens"]
        answer = self.chat(tools=TOOLS, tool_choice=allowed("auto", "walk"))
        self.assertEqual(answer["usage"]["prompt_tokens"], length)
        answer = self.chat(tools=TOOLS, tool_choice=allowed("auto", "run"), status=400)
        self.assertIn("'run'", answer["error"]["message"])
        for wrong in (allowed("any", "walk"), allowed("auto", None), {"type": "allowed_tools"},
                      {"type": "allowed_tools", "allowed_tools": "walk"}):
            self.chat(tools=TOOLS, tool_choice=wrong, status=400)


class ReasoningFirst(door.DoorCase):
    """A format in which every answer begins with reasoning."""

    flags = ("--max-model-len", "512", "--reasoning-parser", "deepseek_r1")

    def test_what_goes_on_is_no_reasoning(self):
        body = {"messages": STARTED, "temperature": 0, "max_tokens": 8}
        for stream in (False, True):
            answer = self.post("/v1/messages", {**body, "stream": stream})
            told = answer.text if stream else answer.json["content"][0]["type"]
            self.assertNotIn("thinking", told)
        choice = self.post(CHAT, {**body, "continue_final_message": True}).json["choices"][0]
        self.assertTrue(choice["message"]["content"])
        choice = self.post(CHAT, body).json["choices"][0]
        self.assertTrue(choice["message"]["reasoning_content"])


class Services(door.DoorCase):
    flags = ("--max-model-len", "512")

    def test_sagemaker_has_one_path(self):
        self.assertEqual(self.send("POST", "/ping").status, 200)
        for body, kind in (({"messages": door.USER, "max_tokens": 2}, "chat.completion"),
                           ({"prompt": "Once", "max_tokens": 2}, "text_completion"),
                           ({"input": "Once"}, "list"), ({"text_1": "a", "text_2": "b"}, "list"),
                           ({"query": "a", "documents": ["b"]}, "list")):
            self.assertEqual(self.post("/invocations", body).json["object"], kind)
        streamed = self.post("/invocations", {"prompt": "Once", "max_tokens": 2, "stream": True})
        self.assertTrue(streamed.text.rstrip().endswith("[DONE]"))
        self.assertIn("'messages'", self.post("/invocations", {}, 400).json["error"]["message"])

    def test_rankings_of_text_embeddings_inference(self):
        body = {"query": "a cat", "top_n": 2}
        jina = self.post("/rerank", {**body, "documents": ["a dog", "a cat", "rain"]}).json["results"]
        tei = self.post("/rerank", {**body, "texts": ["a dog", "a cat", "rain"]}).json
        self.assertEqual(tei, [{"index": one["index"], "score": one["relevance_score"]}
                               for one in jina])
        self.assertEqual(tei[0]["index"], 1)
        told = self.post("/rerank", {**body, "texts": ["a dog", "a cat"], "return_text": True,
                                     "raw_scores": False, "truncate": True}).json
        self.assertEqual(told[0]["text"], "a cat")

    def test_images_beside_a_prompt_are_refused(self):
        for wrap in (lambda prompt: prompt, lambda prompt: [prompt, "Two"]):
            prompt = {"prompt_string": "Once", "multimodal_data": []}
            self.post("/completion", {"prompt": wrap(prompt), "n_predict": 2})
            prompt["multimodal_data"] = ["aGk="]
            answer = self.post("/completion", {"prompt": wrap(prompt), "n_predict": 2}, 400).json
            self.assertIn("images", answer["error"]["message"])

    def test_a_rendered_template_is_the_prompt_of_a_chat(self):
        body = {"messages": door.USER, "tools": TOOLS}
        answer = self.post("/apply-template", body).json
        self.assertIn("walk", answer["prompt"])
        self.assertIn("'tools'", answer["warnings"][0])
        ids = self.post("/tokenize", {"content": answer["prompt"]}).json["tokens"]
        self.assertEqual(ids, self.post("/tokenize", body).json["tokens"])


class NamesOfOthers(door.DoorCase):
    def check_told(self, answer):
        self.assertIn("`gpt-4`", answer.headers["X-Foretoken-Warnings"])

    def test_llamas_endpoints_say_what_answers(self):
        named = {"model": "gpt-4"}
        self.check_told(self.post("/apply-template", {"messages": door.USER, **named}))
        self.check_told(self.post("/tokenize", {"content": "A cat", **named}))
        self.check_told(self.post("/embedding", {"content": "A cat", **named}))
        self.post("/tokenize", {"prompt": "A cat", **named}, 404)
        answer = self.post(CHAT, {"messages": door.USER, **named}, 404).json
        self.assertIn("'*'", answer["error"]["message"])


class AnyName(door.DoorCase):
    flags = ("--served-model-name", "*")

    def test_requests_may_call_the_model_anything(self):
        for path, body in ((CHAT, {"messages": door.USER, "max_tokens": 1}),
                           ("/v1/completions", {"prompt": "a", "max_tokens": 1}),
                           ("/v1/messages", {"messages": door.USER, "max_tokens": 1}),
                           ("/v1/responses", {"input": "a", "max_output_tokens": 1}),
                           ("/completion", {"prompt": "a", "n_predict": 1}),
                           ("/v1/embeddings", {"input": "a"})):
            answer = self.post(path, {"model": "gpt-4o-mini", **body}).json
            self.assertEqual(answer["model"], "gpt-4o-mini", path)
            self.assertNotIn("warnings", answer)
            self.assertEqual(self.post(path, body).json["model"], "foretoken-7m", path)

    def test_it_has_a_name_of_its_own(self):
        self.assertEqual([one["id"] for one in self.get("/v1/models").json["data"]], ["foretoken-7m"])
        self.assertEqual(self.get("/v1/models/gpt-4o-mini").json["id"], "gpt-4o-mini")
        names = self.get("/openapi.json").json["components"]["schemas"]["ModelName"]
        self.assertEqual(names, {"type": "string"})


class EveryAddress(door.DoorCase):
    """As OLLAMA_HOST and others have it; the system names both 0.0.0.0 and [::] for it."""

    flags = ("--host", "*")

    def test_a_star_is_every_address(self):
        self.get("/health")


class NameOfAPath(door.DoorCase):
    flags = ("--served-model-name", "/models/org/name", "plain")

    def test_the_openai_package_asks_with_two_slashes(self):
        for path in ("/v1/models//models/org/name", "/v1/models/%2Fmodels%2Forg%2Fname"):
            self.assertEqual(self.get(path).json["id"], "/models/org/name")
        self.get("/v1/models//plain")
        self.get("/v1/models//models/org", 404)


if __name__ == "__main__":
    door.main()
