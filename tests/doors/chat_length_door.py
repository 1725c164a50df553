#!/usr/bin/env python3
"""How long answers get when a request names no length, and what the model's files say about it."""

import door

CHAT = {"messages": door.USER, "temperature": 0}
# A sentence of the bundled model that goes on for more than a token before it ends.
MIN_TOKENS = 8


class WithoutALength(door.DoorCase):
    flags = ("--max-model-len", "256")

    def check_ends(self, answer, usage_tokens, reason, ended, cut):
        self.assertGreater(usage_tokens, MIN_TOKENS, answer)
        self.assertIn(reason, (ended, cut), answer)

    def test_chat(self):
        answer = self.post("/v1/chat/completions", CHAT).json
        self.check_ends(answer, answer["usage"]["completion_tokens"],
                        answer["choices"][0]["finish_reason"], "stop", "length")

    def test_chat_goes_to_the_end_of_the_context(self):
        answer = self.post("/v1/chat/completions", {**CHAT, "ignore_eos": True}).json
        self.assertEqual(answer["usage"]["total_tokens"], 256, answer)
        self.assertEqual(answer["choices"][0]["finish_reason"], "length")

    def test_chat_stream(self):
        events = self.post("/v1/chat/completions", {**CHAT, "stream": True}).events
        pieces = [e["choices"][0]["delta"].get("content") for e in events if e["choices"]]
        self.assertGreater(len([piece for piece in pieces if piece]), MIN_TOKENS, events)

    def test_response(self):
        answer = self.post("/v1/responses", {"input": "Tell me a story.", "temperature": 0}).json
        self.assertGreater(answer["usage"]["output_tokens"], MIN_TOKENS, answer)

    def test_batch_of_chats(self):
        answer = self.post("/v1/chat/completions/batch",
                           {"messages": [door.USER, door.USER], "temperature": 0}).json
        self.assertGreater(answer["usage"]["completion_tokens"], 2 * MIN_TOKENS, answer)

    def test_completion_has_openais_default(self):
        answer = self.post("/v1/completions", {"prompt": "Once upon a time", "ignore_eos": True}).json
        self.assertEqual(answer["usage"]["completion_tokens"], 16, answer)


class FromGenerationConfig(door.DoorCase):
    """The folder's generation_config.json holds what requests leave open."""

    @classmethod
    def setUpClass(cls):
        cls.folder = door.model_copy(
            generation_config__json={"max_new_tokens": 5, "temperature": 0.0, "do_sample": True})
        cls.model = cls.folder.name
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    def test_its_length_holds(self):
        answer = self.post("/v1/chat/completions",
                           {"messages": door.USER, "ignore_eos": True}).json
        self.assertEqual(answer["usage"]["completion_tokens"], 5, answer)

    def test_it_holds_for_requests_that_ask_for_more_as_in_vllm(self):
        for length, got in ((12, 5), (3, 3)):
            answer = self.post("/v1/chat/completions", {
                "messages": door.USER, "ignore_eos": True, "max_completion_tokens": length}).json
            self.assertEqual(answer["usage"]["completion_tokens"], got, answer)

    def test_its_temperature_holds(self):
        texts = {self.post("/v1/completions", {"prompt": "Once upon a time", "max_tokens": 12,
                                               "seed": seed}).json["choices"][0]["text"]
                 for seed in range(4)}
        self.assertEqual(len(texts), 1, texts)


class FromTheCommandLine(door.DoorCase):
    flags = ("--override-generation-config", '{"max_new_tokens": 7, "temperature": 0}')

    def test_it_holds(self):
        answer = self.post("/v1/chat/completions",
                           {"messages": door.USER, "ignore_eos": True}).json
        self.assertEqual(answer["usage"]["completion_tokens"], 7, answer)

    def test_responses_too(self):
        answer = self.post("/v1/responses", {"input": "Hi", "ignore_eos": True}).json
        self.assertEqual(answer["usage"]["output_tokens"], 7, answer)


if __name__ == "__main__":
    door.main()
