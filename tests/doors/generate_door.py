#!/usr/bin/env python3
"""/generate: SGLang's, as its benchmarks, frontend language and trainers send it, and
text-generation-inference's, as huggingface_hub's InferenceClient and its kin do."""

import json

import door

IDS = {"sampling_params": {"max_new_tokens": 6, "temperature": 0}}


class Generate(door.DoorCase):
    def generate(self, status=200, **more):
        return self.post("/generate", {"sampling_params": {"max_new_tokens": 6, "temperature": 0},
                                       **more}, status).json

    def test_a_text(self):
        answer = self.generate(text="Once upon a time")
        usual = self.post("/v1/completions", {"prompt": "Once upon a time", "max_tokens": 6,
                                              "temperature": 0, "return_token_ids": True}).json
        self.assertEqual(answer["text"], usual["choices"][0]["text"])
        self.assertEqual(answer["output_ids"], usual["choices"][0]["token_ids"])
        meta = answer["meta_info"]
        self.assertEqual(meta["finish_reason"], {"type": "length", "length": 6})
        self.assertEqual([meta["prompt_tokens"], meta["completion_tokens"]],
                         [usual["usage"]["prompt_tokens"], 6])
        self.assertGreater(meta["e2e_latency"], 0)

    def test_ids_lists_and_several_choices(self):
        ids = self.post("/tokenize", {"prompt": "Once upon a time"}).json["tokens"]
        one = self.generate(input_ids=ids)
        self.assertEqual(one["text"], self.generate(text="Once upon a time")["text"])
        two = self.generate(input_ids=[ids, ids[:2]], rid=["a", "b"])
        self.assertEqual(two[0]["text"], one["text"])
        self.assertEqual(len(two), 2)
        self.assertEqual(len(self.generate(text="Once", sampling_params={
            "n": 3, "max_new_tokens": 2})), 3)

    def test_streams(self):
        for more in ({"text": "Once upon a time"}, {"text": ["Once", "A cat"]}):
            answer = self.post("/generate", {**IDS, **more, "stream": True})
            self.assertTrue(answer.text.endswith("data: [DONE]\n\n"))
            whole = self.generate(**more)
            for index, one in enumerate(whole if isinstance(whole, list) else [whole]):
                own = [event for event in answer.events if event.get("index", 0) == index]
                texts = [event["text"] for event in own]
                self.assertEqual(texts[-1], one["text"])
                self.assertTrue(all(b.startswith(a) for a, b in zip(texts, texts[1:])))
                self.assertEqual(own[-1]["output_ids"], one["output_ids"])
                self.assertEqual(own[-1]["meta_info"]["finish_reason"]["type"], "length")

    def test_log_probabilities(self):
        ids = self.post("/tokenize", {"prompt": "Once upon a time there was"}).json["tokens"]
        meta = self.generate(input_ids=ids, return_logprob=True, logprob_start_len=0,
                             top_logprobs_num=2, return_text_in_logprobs=True)["meta_info"]
        told = meta["input_token_logprobs"]
        self.assertEqual([entry[1] for entry in told], ids)
        self.assertIsNone(told[0][0])
        self.assertTrue(all(entry[0] <= 0 and entry[2] for entry in told[1:]))
        self.assertEqual(len(meta["output_token_logprobs"]), 6)
        self.assertEqual([len(top) for top in meta["output_top_logprobs"]], [2] * 6)
        self.assertIsNone(meta["input_top_logprobs"][0])
        cut = self.generate(input_ids=ids, return_logprob=True, logprob_start_len=3,
                            sampling_params={"max_new_tokens": 0})
        self.assertEqual([entry[1] for entry in cut["meta_info"]["input_token_logprobs"]], ids[3:])
        self.assertEqual([cut["text"], cut["output_ids"], cut["meta_info"]["completion_tokens"]],
                         ["", [], 0])
        alone = self.generate(input_ids=ids, return_logprob=True)["meta_info"]
        self.assertEqual(alone["input_token_logprobs"], [])

    def test_forms_and_stops(self):
        schema = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"]}
        answer = self.generate(text="x", sampling_params={
            "json_schema": json.dumps(schema), "max_new_tokens": 60})
        self.assertIn(json.loads(answer["text"])["a"], (1, 2))
        answer = self.generate(text="x", sampling_params={"regex": "abcdef", "stop": ["d"]})
        self.assertEqual(answer["text"], "abc")
        self.assertEqual(answer["meta_info"]["finish_reason"], {"type": "stop", "matched": "d"})
        answer = self.generate(text="x", sampling_params={"ebnf": 'root ::= "yes"'})
        self.assertEqual(answer["text"], "yes")

    def test_what_is_wrong(self):
        for body in ({}, {"text": "a", "input_ids": [1]}, {"text": "a", "image_data": "x"},
                     {"prompt": "a"}, {"input_ids": [99999999]}):
            self.assertIn("message", self.generate(status=400, **body)["error"])

    def test_what_its_clients_ask_first(self):
        for path in ("/get_model_info", "/model_info"):
            self.assertTrue(self.get(path).json["is_generation"])
        # Its benchmarks read it behind a run.
        states = self.get("/get_server_info").json["internal_states"]
        self.assertIsNone(states[0]["avg_spec_accept_length"])

    def test_requests_are_ended_by_their_ids(self):
        self.assertEqual(self.post("/abort_request", {"rid": "nobody"}).json, {"aborted": 0})
        self.assertEqual(self.post("/abort_request", {"rid": "", "abort_all": True}).json,
                         {"aborted": 0})
        self.post("/abort_request", {"rid": ""}, 400)
        self.post("/abort_request", {"request_id": "a"}, 400)

    def test_what_trainers_and_operators_do_says_why_not(self):
        """Of SGLang's and vLLM's engines; llama-server's router of models"""
        for path, word in (("/update_weights_from_disk", "weights"), ("/collective_rpc", "weights"),
                           ("/release_memory_occupation", "memory"), ("/open_session", "cached"),
                           ("/pause_generation", "/abort_requests"), ("/pause", "/abort_requests"),
                           ("/scale_elastic_ep", "--data-parallel-size"), ("/encode", "/v1/embeddings"),
                           ("/models/load", "/v1/models"), ("/v1/videos", "only texts"),
                           ("/load_lora_adapter", "VLLM_ALLOW_RUNTIME_LORA_UPDATING")):
            self.assertIn(word, self.post(path, {}, 404).json["error"]["message"])
        self.assertIn("/openapi.json", self.get("/docs", 404).json["error"]["message"])
        for path in ("/reset_mm_cache", "/reset_encoder_cache"):
            self.post(path, None)
        self.assertEqual(self.get("/is_paused").json, {"is_paused": False})

    def test_who_asks_for_health_by_other_names(self):
        """NVIDIA's NIM and KServe"""
        for prefix in ("", "/v1", "/v2"):
            for name in ("live", "ready"):
                self.get(prefix + "/health/" + name)


SHORT = {"max_new_tokens": 8}


class TextGenerationInference(door.DoorCase):
    flags = ("--max-model-len", "512", "--spec-method", "ngram", "--spec-tokens", "3")

    def generate(self, text="Once upon a time", status=200, path="/generate", **parameters):
        return self.post(path, {"inputs": text, "parameters": {**SHORT, **parameters}}, status).json

    def test_the_text_of_a_completion(self):
        usual = self.post("/v1/completions", {"prompt": "Once upon a time", "max_tokens": 8,
                                              "temperature": 0}).json["choices"][0]["text"]
        self.assertEqual(self.generate(), {"generated_text": usual})
        self.assertEqual(self.generate(return_full_text=True),
                         {"generated_text": "Once upon a time" + usual})
        self.assertEqual(self.generate(path="/"), [{"generated_text": usual}])
        self.assertEqual(self.generate(path="/invocations"), [{"generated_text": usual}])

    def test_details(self):
        details = self.generate(details=True, decoder_input_details=True, top_n_tokens=2)["details"]
        self.assertEqual(details["finish_reason"], "length")
        self.assertEqual(details["generated_tokens"], 8)
        self.assertEqual([len(top) for top in details["top_tokens"]], [2] * 8)
        self.assertTrue(all(token["logprob"] <= 0 for token in details["tokens"]))
        self.assertTrue(details["prefill"])
        ended = self.generate(details=True, max_new_tokens=300, text="3 + 4 =")["details"]
        self.assertEqual(ended["finish_reason"], "eos_token")
        self.assertTrue(ended["tokens"][-1]["special"])

    def test_streams(self):
        for text, more in (("Once upon a time", {}), ("Once upon a time", {"stop": [" little"]}),
                           ("\u65e5\u672c \U0001f600", {"temperature": 5.0, "seed": 3})):
            parameters = {**SHORT, "max_new_tokens": 30, **more}
            whole = self.post("/generate", {"inputs": text, "parameters": {
                **parameters, "details": True}}).json
            for path in ("/generate_stream", "/"):
                answer = self.post(path, {"inputs": text, "parameters": parameters, "stream": True})
                events = answer.events
                self.assertEqual([event["index"] for event in events],
                                 list(range(1, len(events) + 1)))
                told = "".join(event["token"]["text"] for event in events
                               if not event["token"]["special"])
                self.assertEqual(told, whole["generated_text"])
                self.assertEqual(events[-1]["generated_text"], told)
                self.assertEqual(events[-1]["details"]["finish_reason"],
                                 whole["details"]["finish_reason"])
                self.assertEqual([event["token"]["id"] for event in events],
                                 [token["id"] for token in whole["details"]["tokens"]])

    def test_tokens_have_the_same_text_in_streams(self):
        """Characters of several tokens, and text that waited since it might have become a stop"""
        for more in ({"grammar": {"type": "regex", "value": "\u00e9 I am \U0001f984 and \u4f60\u597d there"}},
                     {"stop": ["was a bird", "Lily was"]}, {"stop": ["a l"]}, {"stop": ["re was"]}):
            asked = {"inputs": "Once upon a time", "parameters": {"max_new_tokens": 40, "details": True,
                                                                  **more}}
            whole = self.post("/generate", asked).json
            tokens = whole["details"]["tokens"]
            self.assertEqual(tokens, [event["token"] for event in
                                      self.post("/generate_stream", asked).events])
            told = [token["text"] for token in tokens if not token["special"]]
            self.assertEqual("".join(told), whole["generated_text"])
            self.assertLess(max(map(len, told)), 10, told)

    def test_stop_strings_stay_in_the_text(self):
        answer = self.generate(stop=[" time", " little"], max_new_tokens=40, details=True)
        self.assertTrue(answer["generated_text"].endswith(" little"), answer)
        self.assertEqual(answer["details"]["finish_reason"], "stop_sequence")

    def test_forms(self):
        schema = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"]}
        answer = self.generate(max_new_tokens=60, grammar={"type": "json", "value": schema})
        self.assertIn(json.loads(answer["generated_text"])["a"], (1, 2))
        answer = self.generate(grammar={"type": "regex", "value": "yes|no"})
        self.assertIn(answer["generated_text"], ("yes", "no"))

    def test_errors_have_its_form(self):
        for path in ("/generate", "/", "/generate_stream"):
            for body in ({"inputs": "a", "parameters": {"max_new_tokens": 0}}, {"inputs": 3},
                         {"inputs": "a", "parameters": {"temperature": -1}}):
                answer = self.post(path, body, 400).json
                self.assertEqual(sorted(answer), ["error", "error_type"])
                self.assertEqual(answer["error_type"], "validation")

    def test_chats_of_its_clients_name_no_model(self):
        """Says "dummy" where huggingface_hub's model is an address, "tgi" in TGI's documents."""
        for model in ("dummy", "tgi"):
            self.post("/v1/chat/completions", {"model": model, "messages": door.USER,
                                               "max_tokens": 2})
        self.post("/v1/chat/completions", {"model": "dumm", "messages": door.USER}, 404)

    def test_what_clients_ask_first(self):
        info = self.get("/info").json
        self.assertEqual([info["model_pipeline_tag"], info["max_total_tokens"]],
                         ["text-generation", 512])
        self.assertGreater(info["max_client_batch_size"], 31)


if __name__ == "__main__":
    door.main()
