"""A fresh server under a load that never pauses: its first measurements want idle cores."""

import concurrent.futures
import json
import tempfile
import unittest

import door
from start_door import Started


class ALoadThatNeverPauses(unittest.TestCase):
    """Eight clients from the first moment on, each of which asks again at once.

    All drafts are accepted, so that they pay on any machine."""

    CLIENTS, REQUESTS, TOKENS = 8, 8, 200
    SPECULATION = {"method": "eagle", "model": door.BUNDLED + "-eagle",
                   "num_speculative_tokens": 4, "rejection_sample_method": "synthetic",
                   "synthetic_acceptance_rates": [1, 1, 1, 1]}

    def ask(self, client):
        for number in range(self.REQUESTS):
            prompt = f"Once upon a time there was a girl who had {number + 2} cats and {client} birds."
            answer = door.DoorCase.send("POST", "/v1/completions",
                                        {"prompt": prompt, "max_tokens": self.TOKENS,
                                         "temperature": 0, "ignore_eos": True})
            self.assertEqual(answer.status, 200, answer.body)

    @staticmethod
    def counted(name):
        text = door.DoorCase.send("GET", "/metrics").text
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
                   if line.startswith(name + "{"))

    def test_a_fresh_server_drafts(self):
        with tempfile.TemporaryDirectory() as cache, \
                Started(cache, "--speculative-config", json.dumps(self.SPECULATION)) as server:
            door.DoorCase.url = server.url
            with concurrent.futures.ThreadPoolExecutor(self.CLIENTS) as pool:
                list(pool.map(self.ask, range(self.CLIENTS)))
            self.assertIn("step times: none are known; those of small steps measured", server.log)
            self.assertNotIn("step times: measured in ", server.log, "requests paused")
            tokens = self.counted("vllm:generation_tokens_total")
            self.assertEqual(tokens, self.CLIENTS * self.REQUESTS * self.TOKENS)
            drafted = self.counted("vllm:spec_decode_num_draft_tokens_total")
            self.assertGreater(drafted, tokens / 16, "it tries one now and then at most")


if __name__ == "__main__":
    door.main()
