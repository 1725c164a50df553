"""Chats with a model whose layers keep states: the next turn is found, and says what it would have said."""

import json

import door
from server_process import Server

GOLDEN = door.ROOT / "tests" / "golden" / "architectures" / "qwen3_next" / "config.json"
QUESTIONS = ["Tell me a story about a cat that lives in a lighthouse by the sea, of the keeper who "
             "feeds it, and of the ships that pass by in the night and never see it.",
             "What does the cat see from the window when the storm begins at night?",
             "And then?"]


def folder():
    """A Qwen3-Next of two layers with the bundled model's tokenizer; its weights are made up."""
    config = json.loads(GOLDEN.read_text(encoding="utf-8"))
    config.update(vocab_size=3072, bos_token_id=0, eos_token_id=[0, 3], max_position_embeddings=2048)
    return door.model_copy(config__json=config, model__safetensors=None)


class Chats(door.DoorCase):
    """A server with snapshots and drafts, and one with neither."""

    holder = folder()
    model = holder.name
    flags = ("--load-format", "dummy", "--spec-method", "ngram", "--spec-tokens", "4",
             "--spec-length-policy", "fixed")

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.holder.cleanup()

    def talk(self):
        """The texts of the answers, and the cached tokens of each turn."""
        messages, texts, cached = [], [], []
        for question in QUESTIONS:
            messages.append({"role": "user", "content": question})
            answer = self.post("/v1/chat/completions", {
                "messages": messages, "max_completion_tokens": 60, "temperature": 0,
                "ignore_eos": True}).json
            text = answer["choices"][0]["message"]["content"]
            messages.append({"role": "assistant", "content": text})
            texts.append(text)
            usage = answer["usage"]
            cached.append(usage["prompt_tokens_details"]["cached_tokens"])
            self.assertLess(cached[-1], usage["prompt_tokens"])
        return texts, cached

    def test_the_next_turn_is_found_and_says_the_same(self):
        texts, cached = self.talk()
        self.assertGreater(cached[1], 0)
        self.assertGreater(cached[2], cached[1])
        metrics = self.get("/metrics").text
        hits = [line for line in metrics.splitlines() if line.startswith("vllm:prefix_cache_hits_total")]
        self.assertEqual([float(line.rsplit(" ", 1)[1]) for line in hits], [sum(cached)])
        again, found = self.talk()
        self.assertEqual(again, texts)
        self.assertGreater(found[0], 0)
        with Server(door.program(), self.model, "--load-format", "dummy",
                    "--max-state-snapshots", "0") as plain:
            own, Chats.url = Chats.url, plain.url
            try:
                expected, none = self.talk()
            finally:
                Chats.url = own
        self.assertEqual(texts, expected)
        self.assertEqual(none, [0, 0, 0])


if __name__ == "__main__":
    door.main()
