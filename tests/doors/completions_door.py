#!/usr/bin/env python3
"""What people reported of other servers' completions, streams and errors, as the smallest request
each. Names as in reports_door.py; ts is lightseekorg/tokenspeed, lm is EleutherAI's harness.
"""

import door

CHAT, COMPLETIONS, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/responses"


def forced(text):
    """Makes the model write `text`."""
    return {"temperature": 0, "max_tokens": 200, "structured_outputs": {"choice": [text]}}


class Completions(door.DoorCase):
    flags = ("--reasoning-parser", "qwen3")

    def choice(self, **more):
        return self.post(COMPLETIONS, {"prompt": "Once upon", "temperature": 0, "max_tokens": 4,
                                       **more}).json["choices"][0]

    def pieces(self, path, **more):
        body = {"messages": door.USER} if path == CHAT else {"prompt": "Once upon"}
        events = self.post(path, {"temperature": 0, "max_tokens": 4, "stream": True, **body,
                                  **more}).events
        return [choice for event in events for choice in event["choices"]]

    def test_offsets_of_an_echo_go_on_in_a_stream(self):
        """vllm 47815, 2703 and 15119"""
        whole = self.choice(echo=True, logprobs=1)
        pieces = self.pieces(COMPLETIONS, echo=True, logprobs=1)
        self.assertEqual("".join(piece["text"] for piece in pieces), whole["text"])
        for name in ("tokens", "text_offset"):
            told = [one for piece in pieces for one in piece["logprobs"][name]]
            self.assertEqual(told, whole["logprobs"][name])

    def test_an_echo_alone_tells_no_token_behind_it(self):
        """vllm 39556, lm 1411"""
        more = {"echo": True, "max_tokens": 0, "logprobs": 1, "return_token_ids": True}
        whole = self.choice(**more)
        self.assertEqual((whole["text"], whole["token_ids"]), ("Once upon", []))
        self.assertEqual(len(whole["logprobs"]["tokens"]), len(whole["prompt_token_ids"]))
        pieces = self.pieces(COMPLETIONS, **more)
        self.assertFalse([one for piece in pieces for one in piece.get("token_ids") or []])

    def test_an_echo_beside_ids(self):
        """vllm 57996, 24405 and 27477: the first token is one of them"""
        whole = self.choice(echo=True, return_token_ids=True, logprobs=0,
                            return_tokens_as_token_ids=True)
        self.assertTrue(whole["text"].startswith("Once upon"))
        names = [f"token_id:{one}" for one in whole["prompt_token_ids"] + whole["token_ids"]]
        self.assertEqual(whole["logprobs"]["tokens"], names)
        again = self.choice(prompt=whole["prompt_token_ids"], echo=True)
        self.assertEqual(again["text"], whole["text"])

    def test_ids_in_and_ids_out(self):
        """vLLM's servers that prompts and texts are kept from"""
        known = self.choice(return_token_ids=True, max_tokens=6, logprobs=2)
        body = {"token_ids": known["prompt_token_ids"], "model": "foretoken-7m",
                "sampling_params": {"temperature": 0, "max_tokens": 6, "logprobs": 2,
                                    "detokenize": False}}
        whole = self.post("/inference/v1/generate", body).json["choices"][0]
        self.assertEqual(whole["token_ids"], known["token_ids"])
        self.assertEqual([one["logprob"] for one in whole["logprobs"]["content"]],
                         known["logprobs"]["token_logprobs"])
        events = self.post("/inference/v1/generate", {**body, "stream": True}).events
        self.assertEqual([one for event in events for one in event["choices"][0]["token_ids"]],
                         known["token_ids"])
        del body["sampling_params"]["max_tokens"]
        longest = self.post("/inference/v1/generate", body).json["choices"][0]
        self.assertGreater(len(longest["token_ids"]), 16)

    def test_stops_and_intervals_lose_nothing(self):
        """vllm 41691, 51641, 31135 and 27482"""
        more = {**forced("<think>we go there</think>hello DEFG"), "stop": ["FGH"],
                "logprobs": True, "return_token_ids": True, "messages": door.USER}
        whole = self.post(CHAT, more).json["choices"][0]
        for interval in (1, 3, 50):
            pieces = self.pieces(CHAT, **more, stream_interval=interval)
            for name in ("reasoning", "content"):
                told = "".join(piece["delta"].get(name) or "" for piece in pieces)
                self.assertEqual(told, whole["message"][name])
            told = [one for piece in pieces for one in piece.get("token_ids") or []]
            self.assertEqual(told, whole["token_ids"])

    def test_lengths_by_the_name_of_chats(self):
        """guidellm sends both names to both endpoints"""
        for more, length in (({"max_completion_tokens": 3}, 3),
                             ({"max_completion_tokens": 3, "max_tokens": 5}, 5)):
            answer = self.post("/v1/completions", {
                "prompt": "Once", "ignore_eos": True, "max_tokens": None, **more}).json
            self.assertEqual(answer["usage"]["completion_tokens"], length)
            self.assertNotIn("warnings", answer)

    def test_bad_words_behind_spaces(self):
        """vllm 23886: " upon" is one token, "upon" are two: both are meant by either"""
        plain = self.choice(prompt="Once", max_tokens=4)["text"]
        self.assertIn(" upon", plain)
        for word in ("upon", " upon"):
            self.assertNotIn("upon", self.choice(prompt="Once", max_tokens=24,
                                                 bad_words=[word])["text"])

    def test_what_may_become_a_stop_is_held_back(self):
        """vllm 3574 and 2577"""
        pieces = self.pieces(COMPLETIONS, **forced("xxDEFGHIJK"), stop=["DEFGHIJ"])
        self.assertEqual("".join(piece["text"] for piece in pieces), "xx")
        self.assertEqual(pieces[-1]["stop_reason"], "DEFGHIJ")

    def test_choices_of_one_request_differ(self):
        """ts 1613, vllm 11898"""
        for seed in ({}, {"seed": 3}):
            answer = self.post(CHAT, {"messages": door.USER, "n": 4, "temperature": 1.2,
                                      "max_tokens": 20, **seed}).json
            self.assertEqual(len({one["message"]["content"] for one in answer["choices"]}), 4)

    def test_responses_stream_what_they_end_with(self):
        """vllm 30099"""
        events = self.post(RESPONSES, {"input": "say", "stream": True, "temperature": 0,
                                       "max_output_tokens": 60}).events
        told = "".join(event["delta"] for event in events
                       if event["type"] == "response.output_text.delta")
        self.assertEqual(told, events[-1]["response"]["output"][0]["content"][0]["text"])

    def test_errors_name_the_field_that_was_sent(self):
        """vllm 50256"""
        for path, name, value in (
                (CHAT, "temperature", -1), (CHAT, "stop", [1]), (CHAT, "n", 0),
                (CHAT, "max_completion_tokens", 0), (RESPONSES, "max_output_tokens", 0),
                (CHAT, "structured_outputs", {"regex": "[a-"}),
                (CHAT, "messages", [{"role": "user", "content": 3}])):
            body = {"input": "x"} if path == RESPONSES else {"messages": door.USER}
            error = self.post(path, {**body, name: value}, 400).json["error"]
            self.assertEqual(error["param"], name, error)

    def test_items_of_one_id_are_paged(self):
        item = {"id": "msg_a", "role": "user", "content": "a"}
        made = self.post(RESPONSES, {"input": [item, item], "max_output_tokens": 1}).json["id"]
        path, seen = f"{RESPONSES}/{made}/input_items?order=asc&limit=1", []
        for _ in range(3):
            page = self.get(path + (f"&after={seen[-1]}" if seen else "")).json
            seen += [one["id"] for one in page["data"]]
        self.assertEqual(len(seen), 2)
        self.assertEqual(len(set(seen)), 2)


if __name__ == "__main__":
    door.main()
