#!/usr/bin/env python3
"""llama-server's own endpoints, with the fields that its clients send and read."""

import json
import math
import pathlib
import time

import door

PROMPT = "Once upon a time there was a little"


class Completion(door.DoorCase):
    flags = ("--max-model-len", "256", "--speculative-config",
             '{"method": "ngram", "num_speculative_tokens": 3, "length_policy": "fixed"}')

    def complete(self, **fields):
        return self.post("/completion", {"prompt": PROMPT, "temperature": 0, "n_predict": 12,
                                         "ignore_eos": True, **fields}).json

    def test_what_an_answer_has(self):
        answer = self.complete()
        openai = self.post("/v1/completions", {
            "prompt": PROMPT, "temperature": 0, "max_tokens": 12, "ignore_eos": True}).json
        self.assertEqual(answer["content"], openai["choices"][0]["text"])
        self.assertEqual(answer["tokens_predicted"], 12)
        self.assertEqual(answer["tokens_evaluated"], openai["usage"]["prompt_tokens"])
        self.assertIs(answer["stop"], True)
        self.assertEqual((answer["stop_type"], answer["stopping_word"]), ("limit", ""))
        self.assertEqual(answer["tokens"], [])
        self.assertEqual(answer["prompt"], PROMPT)
        self.assertEqual(answer["model"], "foretoken-7m")
        self.assertIs(answer["truncated"], False)
        self.assertEqual(answer["generation_settings"]["n_predict"], 12)
        self.assertEqual(answer["generation_settings"]["temperature"], 0)
        self.assertNotIn("completion_probabilities", answer)

    def test_timings(self):
        self.complete(cache_prompt=False)
        answer = self.complete(cache_prompt=False)
        timings = answer["timings"]
        self.assertEqual(timings["cache_n"], 0)
        self.assertEqual(timings["prompt_n"], answer["tokens_evaluated"])
        self.assertEqual(timings["predicted_n"], 12)
        for name in ("prompt_ms", "prompt_per_second", "predicted_ms", "predicted_per_second"):
            self.assertGreater(timings[name], 0, name)

    def test_a_cached_prompt_is_counted(self):
        prompt = PROMPT + " cat who liked to sleep in the warm sun near the old house" * 3
        self.complete(prompt=prompt)
        answer = self.complete(prompt=prompt)
        self.assertGreater(answer["tokens_cached"], 0)
        self.assertEqual(answer["timings"]["cache_n"], answer["tokens_cached"])
        self.assertEqual(self.complete(prompt=prompt, cache_prompt=False)["tokens_cached"], 0)

    def test_without_a_length_it_goes_on(self):
        for body in ({}, {"n_predict": -1}, {"max_tokens": -1}):
            answer = self.post("/completion", {"prompt": PROMPT, "temperature": 0,
                                               "ignore_eos": True, **body}).json
            self.assertEqual(answer["tokens_predicted"] + answer["tokens_evaluated"], 256, body)

    def test_no_output(self):
        answer = self.complete(n_predict=0)
        self.assertEqual((answer["content"], answer["tokens_predicted"]), ("", 0))

    def test_how_it_stopped(self):
        text = self.complete()["content"]
        word = text.split()[2]
        answer = self.complete(stop=[word, ""])
        self.assertEqual((answer["stop_type"], answer["stopping_word"]), ("word", word))
        self.assertNotIn(word, answer["content"])
        ended = self.post("/completion", {"prompt": "<|user|>Hi<|end|><|assistant|>",
                                          "temperature": 0}).json
        self.assertEqual(ended["stop_type"], "eos")

    def test_probabilities(self):
        answer = self.complete(n_probs=3, return_tokens=True)
        told = answer["completion_probabilities"]
        self.assertEqual([one["id"] for one in told], answer["tokens"])
        self.assertEqual("".join(one["token"] for one in told), answer["content"])
        for one in told:
            self.assertEqual(len(one["top_logprobs"]), 3)
            self.assertEqual(bytes(one["bytes"]).decode(), one["token"])
            self.assertEqual(one["top_logprobs"][0]["id"], one["id"])
            self.assertLessEqual(one["logprob"], 0)

    def test_probabilities_after_the_samplers(self):
        def first(**fields):
            answer = self.complete(n_predict=1, n_probs=20, post_sampling_probs=True, **fields)
            (told,) = answer["completion_probabilities"]
            self.assertNotIn("logprob", told)
            self.assertNotIn("top_logprobs", told)
            return told, {one["id"]: one["prob"] for one in told["top_probs"]}

        told, every = first(temperature=1.0)
        raw = self.complete(n_predict=1, n_probs=20, temperature=1.0)["completion_probabilities"][0]
        for one in raw["top_logprobs"]:
            self.assertAlmostEqual(every[one["id"]], math.exp(one["logprob"]), 4)
        # Of two tokens each has its share of both; a low temperature favours the likelier one.
        best, second = list(every)[:2]
        told, two = first(temperature=1.0, top_k=2)
        self.assertEqual(list(two), [best, second])
        self.assertAlmostEqual(sum(two.values()), 1, 5)
        self.assertAlmostEqual(two[best], every[best] / (every[best] + every[second]), 4)
        self.assertAlmostEqual(told["prob"], two[told["id"]], 6)
        _, cold = first(temperature=0.5, top_k=2)
        self.assertAlmostEqual(cold[best] / cold[second], (two[best] / two[second]) ** 2, 2)
        self.assertEqual(first(temperature=0)[1], {best: 1})
        for share in (0, -1):
            self.assertEqual(first(temperature=1.0, top_p=share)[1], {best: 1})
        self.assertEqual(first(temperature=1.0, top_p=7, min_p=-3)[1], every)
        # What a grammar forbids has no probability.
        _, allowed = first(temperature=1.0, grammar='root ::= " cat" | " dog"', ignore_eos=False)
        self.assertAlmostEqual(sum(allowed.values()), 1, 5)
        streamed = self.post("/completion", {
            "prompt": PROMPT, "temperature": 0, "n_predict": 3, "n_probs": 2, "stream": True,
            "post_sampling_probs": True, "ignore_eos": True}).events[:-1]
        for event in streamed:
            self.assertEqual(event["completion_probabilities"][0]["prob"], 1)

    def test_probabilities_are_the_same_with_and_without_drafts(self):
        fields = {"n_predict": 40, "n_probs": 5, "post_sampling_probs": True, "temperature": 0.8,
                  "seed": 3, "top_p": 0.9, "cache_prompt": False}
        with_drafts = self.complete(**fields)
        without = self.complete(**fields, speculative={"enabled": False})
        self.assertEqual(with_drafts["content"], without["content"])
        self.assertEqual(with_drafts["completion_probabilities"],
                         without["completion_probabilities"])

    def test_stream(self):
        whole = self.complete(return_tokens=True)
        answer = self.post("/completion", {"prompt": PROMPT, "temperature": 0, "n_predict": 12,
                                           "ignore_eos": True, "stream": True})
        self.assertNotIn("[DONE]", answer.text)
        *pieces, last = answer.events
        self.assertEqual("".join(piece["content"] for piece in pieces), whole["content"])
        self.assertEqual(sum((piece["tokens"] for piece in pieces), []), whole["tokens"])
        self.assertEqual({piece["stop"] for piece in pieces}, {False})
        self.assertIs(last["stop"], True)
        self.assertEqual(last["content"], "")
        self.assertEqual(last["timings"]["predicted_n"], 12)
        self.assertEqual(last["stop_type"], "limit")

    def test_prompts_of_every_form(self):
        ids = self.post("/tokenize", {"content": PROMPT}).json["tokens"]
        content = self.complete()["content"]
        for prompt in (ids, [*ids[:-1], " little"], [float(ids[0]), *ids[1:-1], " little"],
                       {"prompt_string": PROMPT}):
            self.assertEqual(self.complete(prompt=prompt)["content"], content, prompt)
        several = self.complete(prompt=[PROMPT, "The dog"])
        self.assertEqual([one["index"] for one in several], [0, 1])
        self.assertEqual(several[0]["content"], content)
        self.assertEqual(self.complete(prompt=[ids, "The dog"])[0]["content"], content)
        start, _, end = PROMPT.rpartition(" ")
        self.assertEqual(self.complete(prompt=[[start, " " + end]])["tokens_evaluated"], len(ids))

    def test_any_name_of_a_model_does(self):
        answer = self.complete(model="gpt-4")
        self.assertEqual(answer["content"], self.complete()["content"])
        self.assertEqual(answer["model"], "foretoken-7m")
        self.assertIn("`gpt-4`", answer["warnings"][0])
        self.post("/embedding", {"content": "A cat", "model": "gpt-4"})
        self.post("/apply-template", {"messages": door.USER, "model": "gpt-4"})
        self.post("/v1/completions", {"prompt": PROMPT, "model": "gpt-4"}, status=404)

    def test_bias_forms_and_fields(self):
        first = self.complete(return_tokens=True)["tokens"][0]
        for bias in ([[first, False]], [[first, -100]], {str(first): -100}):
            tokens = self.complete(return_tokens=True, logit_bias=bias)["tokens"]
            self.assertNotIn(first, tokens, bias)
        word = self.complete()["content"].split()[0]
        without = self.complete(logit_bias=[[" " + word, False], [word, False], [word, -50]])["content"]
        self.assertNotEqual(without.split()[0], word)
        told = self.complete(grammar='root ::= "yes" | "no"', ignore_eos=False)
        self.assertIn(told["content"], ("yes", "no"))
        answer = self.complete(json_schema={"enum": ["yes", "no"]}, ignore_eos=False)
        self.assertIn(json.loads(answer["content"]), ("yes", "no"))
        chosen = self.complete(response_fields=["content", "timings/predicted_n", "nothing"])
        self.assertEqual(set(chosen), {"content", "timings/predicted_n"})

    def test_samplers_of_llama_do_not_stand_in_the_way(self):
        self.complete(mirostat=2, typical_p=0.9, dynatemp_range=0.5, xtc_probability=0.1,
                      dry_multiplier=0.8, repeat_last_n=64, repeat_penalty=1.1, top_k=40,
                      min_keep=0, n_keep=0, samplers=["top_k"], id_slot=-1, seed=4294967295,
                      penalize_nl=False, tfs_z=1.0)

    def test_errors_are_openais(self):
        answer = self.post("/completion", {"n_predict": 4}, 400).json
        self.assertIn("prompt", answer["error"]["message"])
        answer = self.post("/completion", {"prompt": "a", "logit_bias": [["x"]]}, 400).json
        self.assertEqual(answer["error"]["param"], "logit_bias")

    def test_the_old_path(self):
        self.assertIn("content", self.post("/completions", {"prompt": PROMPT, "n_predict": 2}).json)


class AboutTheServer(door.DoorCase):
    flags = ("--max-num-seqs", "3", "--max-model-len", "512")

    def test_what_clients_of_ollama_ask_for(self):
        tags = self.get("/api/tags").json
        self.assertEqual([one["name"] for one in tags["models"]], ["foretoken-7m"])
        self.assertEqual(tags["data"], self.get("/v1/models").json["data"])
        shown = self.post("/api/show", {"model": "foretoken-7m"}).json
        self.assertEqual(shown["model_info"]["llama.context_length"], 512)
        self.assertEqual(shown["capabilities"], ["completion", "tools"])
        self.assertIn("messages", shown["template"])
        chat = {"messages": door.USER, "max_tokens": 4, "temperature": 0}
        self.assertEqual(self.post("/api/chat", chat).json["choices"],
                         self.post("/v1/chat/completions", chat).json["choices"])

    def test_lengths_of_prompts(self):
        counted = self.post("/v1/chat/completions/input_tokens", {"messages": door.USER}).json
        usage = self.post("/v1/chat/completions", {"messages": door.USER, "max_tokens": 1}).json["usage"]
        self.assertEqual(counted["input_tokens"], usage["prompt_tokens"])
        counted = self.post("/responses/input_tokens", {"input": door.USER[0]["content"]}).json
        self.assertEqual(counted, {"object": "response.input_tokens",
                                   "input_tokens": usage["prompt_tokens"]})

    def test_props(self):
        props = self.get("/props").json
        self.assertEqual(props["total_slots"], 3)
        self.assertEqual(props["model_path"], "foretoken-7m")
        self.assertIn("messages", props["chat_template"])
        self.assertEqual(props["eos_token"], "<|endoftext|>")
        self.assertTrue(props["build_info"].startswith("foretoken"))
        self.assertEqual(props["default_generation_settings"]["n_ctx"], 512)
        self.assertIn("temperature", props["default_generation_settings"]["params"])
        self.post("/props", {}, 501)

    def test_slots(self):
        slots = self.get("/slots").json
        self.assertEqual([slot["id"] for slot in slots], [0, 1, 2])
        self.assertEqual({slot["is_processing"] for slot in slots}, {False})
        self.get("/slots?fail_on_no_slot=1")

    def test_metrics_stay(self):
        counted = 'http_requests_total{handler="/props",method="GET",status="2xx"}'
        self.get("/props")
        for _ in range(50):  # it is counted behind its answer
            page = self.get("/metrics").text
            if counted in page:
                break
            time.sleep(0.1)
        self.assertIn("vllm:gpu_cache_usage_perc", page)
        self.assertIn(counted, page)

    def test_template(self):
        answer = self.post("/apply-template", {"messages": [{"role": "user", "content": "Hi"}]})
        self.assertEqual(answer.json["prompt"], "<|user|>Hi<|end|><|assistant|>")

    def test_tokenize_and_back(self):
        text = "A cat \N{UNICORN FACE}!"
        ids = self.post("/tokenize", {"content": text}).json["tokens"]
        self.assertEqual(ids, self.post("/tokenize", {"prompt": text}).json["tokens"])
        self.assertEqual(self.post("/detokenize", {"tokens": ids}).json["content"], text)
        pieces = self.post("/tokenize", {"content": text, "with_pieces": True}).json["tokens"]
        self.assertEqual([piece["id"] for piece in pieces], ids)
        self.assertTrue(any(isinstance(piece["piece"], list) for piece in pieces))
        joined = b"".join(bytes(p["piece"]) if isinstance(p["piece"], list)
                          else p["piece"].encode() for p in pieces)
        self.assertEqual(joined.decode(), text)

    def test_embedding(self):
        wanted = [item["embedding"] for item in
                  self.post("/v1/embeddings", {"input": ["a cat", "a dog"]}).json["data"]]
        for path in ("/embedding", "/embeddings"):
            answer = self.post(path, {"content": ["a cat", "a dog"]}).json
            self.assertEqual(answer, [{"index": 0, "embedding": [wanted[0]]},
                                      {"index": 1, "embedding": [wanted[1]]}])
            self.assertEqual(self.post(path, {"input": "a cat"}).json[0]["embedding"][0], wanted[0])
        # home-generative-agent 394: clients of OpenAI's API whose address lacks /v1.
        for more in ({"model": "foretoken-7m"}, {"model": "other"}, {"encoding_format": "float"}):
            answer = self.post("/embeddings", {"input": "a cat", **more}).json
            self.assertEqual(answer["data"][0]["embedding"], wanted[0])
        raw = self.post("/embedding", {"content": "a cat", "embd_normalize": -1}).json[0]
        self.assertNotEqual(raw["embedding"][0], wanted[0])

    def test_infill_needs_a_model_that_knows_how(self):
        answer = self.post("/infill", {"input_prefix": "a", "input_suffix": "b"}, 501).json
        self.assertIn("fim", answer["error"]["message"])
        self.assertNotIn("/infill", self.get("/openapi.json").json["paths"])


def tokenizer_with(names):
    """The bundled tokenizer with `names` in place of its last words."""
    tokenizer = json.loads((pathlib.Path(door.BUNDLED) / "tokenizer.json").read_text())
    vocab = tokenizer["model"]["vocab"]
    gone = [text for text, _ in sorted(vocab.items(), key=lambda item: item[1])[-len(names):]]
    first = len(vocab) - len(names)
    for text in gone:
        del vocab[text]
    pairs = [merge.split(" ") if isinstance(merge, str) else merge
             for merge in tokenizer["model"]["merges"]]
    tokenizer["model"]["merges"] = [pair for pair in pairs if "".join(pair) not in gone]
    tokenizer["added_tokens"] += [
        {"id": first + index, "content": name, "single_word": False, "lstrip": False,
         "rstrip": False, "normalized": False, "special": True}
        for index, name in enumerate(names)]
    return tokenizer


class Infill(door.DoorCase):
    """A model whose vocabulary has tokens for gaps."""

    names = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_sep|>", "<|repo_name|>")

    @classmethod
    def setUpClass(cls):
        cls.folder = door.model_copy(tokenizer__json=tokenizer_with(cls.names))
        cls.model = cls.folder.name
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    def infill(self, **more):
        return self.post("/infill", {"input_prefix": "The cat", "input_suffix": " the house.",
                                     "n_predict": 6, "temperature": 0, **more}).json

    def test_parts_stand_around_the_gap(self):
        answer = self.infill()
        self.assertEqual(answer["prompt"],
                         "<|fim_prefix|>The cat<|fim_suffix|> the house.<|fim_middle|>")
        self.assertLessEqual(answer["tokens_predicted"], 6)
        self.assertEqual(self.infill(prompt=" sat in")["prompt"],
                         "<|fim_prefix|>The cat sat in<|fim_suffix|> the house.<|fim_middle|>")

    def test_a_suffix_is_the_same(self):
        """void 544, github-copilot-llm-gateway 68: OpenAI's field for a gap"""
        body = {"prompt": "The cat", "suffix": " the house.", "max_tokens": 6, "temperature": 0}
        choice = self.post("/v1/completions", body).json["choices"][0]
        self.assertEqual(choice["text"], self.infill()["content"])
        events = self.post("/v1/completions", {**body, "stream": True}).events
        self.assertEqual("".join(e["choices"][0]["text"] for e in events), choice["text"])
        self.post("/v1/completions", {**body, "prompt": ["a", "b"]}, 400)

    def test_mistrals_gap_is_the_same_in_the_form_of_a_chat(self):
        body = {"prompt": "The cat", "suffix": " the house.", "max_tokens": 6, "temperature": 0}
        answer = self.post("/v1/fim/completions", body).json
        self.assertEqual(answer["choices"][0]["message"]["content"], self.infill()["content"])
        events = self.post("/v1/fim/completions", {**body, "stream": True}).events
        self.assertEqual("".join(e["choices"][0]["delta"]["content"] for e in events),
                         answer["choices"][0]["message"]["content"])

    def test_other_files_come_first(self):
        answer = self.infill(input_extra=[{"filename": "a.py", "text": "x = 1\n"}])
        self.assertEqual(answer["prompt"],
                         "<|repo_name|>myproject\n<|file_sep|>a.py\nx = 1\n<|file_sep|>filename\n"
                         "<|fim_prefix|>The cat<|fim_suffix|> the house.<|fim_middle|>")

    def test_streams_and_is_described(self):
        answer = self.post("/infill", {"input_prefix": "a", "input_suffix": "b", "n_predict": 3,
                                       "stream": True})
        self.assertIs(answer.events[-1]["stop"], True)
        self.assertIn("/infill", self.get("/openapi.json").json["paths"])
        self.post("/infill", {"input_prefix": "a"}, 400)


if __name__ == "__main__":
    door.main()
