#!/usr/bin/env python3
"""What boards, alerts and routers read of /metrics: names, labels and texts of bounds as vLLM has them;
and paths of gateways and of other services' clients: Azure's, KServe's, Cohere's, Mistral's, SGLang's."""

import base64
import re
import struct

import door

# Names in the boards that vLLM's project publishes, but for features that do not exist here.
NAMES = """
    vllm:cache_config_info vllm:e2e_request_latency_seconds_bucket vllm:engine_sleep_state
    vllm:generation_tokens_total vllm:inter_token_latency_seconds_bucket
    vllm:iteration_tokens_total_bucket vllm:kv_cache_usage_perc vllm:num_preemptions_total
    vllm:num_requests_running vllm:num_requests_waiting vllm:num_requests_waiting_by_reason
    vllm:prefix_cache_hits_total vllm:prefix_cache_queries_total vllm:prompt_tokens_by_source_total
    vllm:prompt_tokens_cached_total vllm:prompt_tokens_total
    vllm:request_decode_time_seconds_bucket vllm:request_generation_tokens_bucket
    vllm:request_inference_time_seconds_bucket vllm:request_max_num_generation_tokens_bucket
    vllm:request_params_max_tokens_bucket vllm:request_params_n_bucket
    vllm:request_prefill_kv_computed_tokens_bucket vllm:request_prefill_time_seconds_bucket
    vllm:request_prompt_tokens_bucket vllm:request_queue_time_seconds_bucket
    vllm:request_success_total vllm:request_time_per_output_token_seconds_bucket
    vllm:spec_decode_num_accepted_tokens_per_pos_total vllm:spec_decode_num_accepted_tokens_total
    vllm:spec_decode_num_draft_tokens_total vllm:spec_decode_num_drafts_total
    vllm:time_to_first_token_seconds_bucket http_requests_total http_request_duration_seconds_sum
    process_resident_memory_bytes process_start_time_seconds
""".split()
# The bounds that a service's goals are chosen from.
GOALS = ("0.1", "0.25", "0.5", "0.75", "1.0", "2.5", "5.0", "10.0", "+Inf")
AZURE = "/openai/deployments/foretoken-7m"
VERSION = "?api-version=2024-10-21"


class Boards(door.DoorCase):
    flags = ("--max-model-len", "512", "--max-num-seqs", "4", "--spec-method", "eagle3",
             "--spec-model", str(door.ROOT / "models" / "foretoken-7m-eagle3"), "--spec-tokens", "3",
             "--spec-length-policy", "fixed")

    def series(self):
        """Values by name and labels."""
        lines = [line for line in self.get("/metrics").text.splitlines() if not line.startswith("#")]
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}

    def sums(self, name, label=""):
        return sum(value for key, value in self.series().items()
                   if key.startswith(name + "{") and label in key)

    def test_names_are_there(self):
        self.post("/v1/completions", {"prompt": "Once", "max_tokens": 2})
        found = {re.match(r"[^{ ]+", key)[0] for key in self.series()}
        self.assertEqual([name for name in NAMES if name not in found], [])

    def test_answers_tell_gateways_the_load(self):
        body = {"prompt": "Once", "max_tokens": 2}
        told = self.post("/v1/completions", body, headers={"endpoint-load-metrics-format": "TEXT"})
        self.assertRegex(told.headers["endpoint-load-metrics"],
                         r"^TEXT named_metrics.kv_cache_usage_perc=0\.\d+, "
                         r"named_metrics.num_requests_waiting=0\.0$")
        self.assertIsNone(self.post("/v1/completions", body).headers["endpoint-load-metrics"])

    def test_an_engine_that_serves_is_awake(self):
        """vLLM's status board shows one without the name as down"""
        self.assertEqual(self.sums("vllm:engine_sleep_state", 'sleep_state="awake"'), 1)
        self.assertEqual(self.sums("vllm:engine_sleep_state"), 1)

    def test_bounds_have_the_text_that_boards_ask_for(self):
        found = {re.search(r'le="([^"]*)"', key)[1] for key in self.series()
                 if key.startswith("vllm:time_to_first_token_seconds_bucket")}
        self.assertLessEqual(set(GOALS), found)

    def test_tokens_of_answers_are_counted_once(self):
        """With drafts and several choices, each of which computes its prompt, as with vLLM"""
        names = ("vllm:prompt_tokens_total", "vllm:generation_tokens_total",
                 "vllm:request_success_total")
        before = [self.sums(name) for name in names]
        usages = [self.post("/v1/completions", {
            "prompt": "One two one two one two one", "max_tokens": 20, "ignore_eos": True, "n": n,
            "temperature": 0.5, "seed": n}).json["usage"] for n in (1, 3)]
        after = [self.sums(name) for name in names]
        self.assertEqual(after[1] - before[1], sum(one["completion_tokens"] for one in usages))
        self.assertEqual(after[0] - before[0], (1 + 3) * usages[0]["prompt_tokens"])
        self.assertEqual(after[2] - before[2], 1 + 3)
        drafted = self.sums("vllm:spec_decode_num_draft_tokens_total")
        accepted = self.sums("vllm:spec_decode_num_accepted_tokens_total")
        self.assertGreater(drafted, 0)
        self.assertGreaterEqual(drafted, accepted)
        self.assertEqual(accepted, self.sums("vllm:spec_decode_num_accepted_tokens_per_pos_total"))

    def test_what_lm_studios_clients_find(self):
        """Zed, Cline: its list of models, and OpenAI's bodies below /api/v0"""
        models = self.get("/api/v0/models").json["data"]
        names = [model["id"] for model in self.get("/v1/models").json["data"]]
        self.assertEqual([model["id"] for model in models], names)
        self.assertEqual(self.get("/api/v0/models/" + names[0]).json, models[0])
        self.assertEqual([models[0]["type"], models[0]["state"]], ["llm", "loaded"])
        self.assertGreater(models[0]["loaded_context_length"], 0)
        self.get("/api/v0/models/nobody", 404)
        answer = self.post("/api/v0/chat/completions", {"model": names[0], "messages": door.USER,
                                                        "max_tokens": 2, "stream": True})
        self.assertEqual(answer.events[0]["object"], "chat.completion.chunk")
        self.post("/api/v0/completions", {"prompt": "Once", "max_tokens": 2})

    def test_what_clients_of_lm_studio_04_find(self):
        """localmind 11, lmstudio-bug-tracker 1659: the newer list, whose models must be loaded"""
        models = self.get("/api/v1/models").json["models"]
        names = [model["id"] for model in self.get("/v1/models").json["data"]]
        self.assertEqual([model["key"] for model in models], names)
        instance, = models[0]["loaded_instances"]
        self.assertEqual(instance["id"], names[0])
        self.assertGreater(instance["config"]["context_length"], 0)
        self.assertEqual(models[0]["type"], "llm")
        loaded = self.post("/api/v1/models/load", {"model": names[0], "context_length": 8192}).json
        self.assertEqual((loaded["instance_id"], loaded["status"]), (names[0], "loaded"))
        self.post("/api/v1/models/load", {"model": "nobody"}, 404)


class Gateways(door.DoorCase):
    flags = ("--max-model-len", "256", "--max-num-seqs", "4", "--api-key", "secret",
             "--served-model-name", "foretoken-7m", "org/other")
    key = {"api-key": "secret"}

    def ask(self, path, body, status=200):
        return self.post(path, body, status, headers=self.key)

    def test_azures_key_and_deployments(self):
        body = {"messages": door.USER, "max_tokens": 4}
        self.post(f"{AZURE}/chat/completions{VERSION}", body, 401)
        answer = self.ask(f"{AZURE}/chat/completions{VERSION}", body).json
        self.assertEqual((answer["object"], answer["model"]), ("chat.completion", "foretoken-7m"))
        stream = self.ask(f"{AZURE}/chat/completions{VERSION}", {**body, "stream": True})
        self.assertEqual(stream.events[-1]["choices"][0]["finish_reason"], "length")
        text = self.ask(f"{AZURE}/completions{VERSION}",
                        {"model": "gpt-4o", "prompt": "Once", "max_tokens": 2}).json
        self.assertEqual((text["object"], text["model"]), ("text_completion", "foretoken-7m"))
        vectors = self.ask(f"{AZURE}/embeddings{VERSION}", {"input": ["One", "Two"]}).json
        self.assertEqual(len(vectors["data"]), 2)
        self.ask(f"/openai/deployments/gpt-4o/chat/completions{VERSION}", body, 404)

    def test_azures_v1(self):
        body = {"model": "foretoken-7m", "input": "Hi", "max_output_tokens": 4}
        response = self.ask("/openai/v1/responses", body).json
        for path in (f"/openai/v1/responses/{response['id']}",
                     f"/openai/responses/{response['id']}?api-version=preview"):
            self.assertEqual(self.get(path, headers=self.key).json["id"], response["id"])
        models = self.get("/openai/v1/models", headers=self.key).json["data"]
        self.assertEqual([one["id"] for one in models], ["foretoken-7m", "org/other"])
        self.get("/openai/v1/models/org/other", headers=self.key)
        self.ask("/openai/v1/chat/completions",
                 {"model": "foretoken-7m", "messages": door.USER, "max_tokens": 2})

    def test_kserves_probes_need_no_key(self):
        self.assertEqual(self.get("/v2").json["name"], "foretoken")
        self.get("/v2/health/live")
        self.get("/v2/health/ready")
        for name in ("foretoken-7m", "org/other", "org%2Fother"):
            model = self.get(f"/v2/models/{name}").json
            self.assertEqual((model["name"], model["versions"]), (name.replace("%2F", "/"), ["1"]))
            self.assertEqual(self.get(f"/v2/models/{name}/ready").json["ready"], True)
            self.get(f"/v2/models/{name}/versions/1/ready")
        self.get("/v2/models/nobody/ready", 404)

    def test_coheres_vectors(self):
        texts = ["One cat", "Two dogs"]
        answer = self.ask("/v2/embed", {"model": "foretoken-7m", "texts": texts,
                                        "input_type": "search_document",
                                        "embedding_types": ["float", "base64"]}).json
        self.assertEqual(answer["texts"], texts)
        self.assertEqual(answer["response_type"], "embeddings_by_type")
        self.assertGreater(answer["meta"]["billed_units"]["input_tokens"], 0)
        for numbers, packed in zip(answer["embeddings"]["float"], answer["embeddings"]["base64"]):
            unpacked = struct.unpack(f"<{len(numbers)}f", base64.b64decode(packed))
            for one, other in zip(numbers, unpacked):
                self.assertAlmostEqual(one, other, places=6)
        ours = self.ask("/v1/embeddings", {"model": "foretoken-7m", "input": texts}).json
        self.assertEqual([one["embedding"] for one in ours["data"]], answer["embeddings"]["float"])
        parts = {"content": [{"type": "text", "text": texts[0]}]}
        self.assertEqual(self.ask("/v2/embed", {"inputs": [parts]}).json["embeddings"]["float"],
                         answer["embeddings"]["float"][:1])

    def test_coheres_long_texts(self):
        long = "a cat and " * 400
        for body in ({}, {"truncate": "START"}, {"max_tokens": 7}):
            answer = self.ask("/v2/embed", {"texts": [long], **body}).json
            self.assertLessEqual(answer["meta"]["billed_units"]["input_tokens"],
                                 8 if "max_tokens" in body else 256)
        self.ask("/v2/embed", {"texts": [long], "truncate": "NONE"}, 400)
        self.ask("/v2/embed", {"texts": ["a"], "embedding_types": ["int8"]}, 400)

    def test_mistrals_gaps_need_a_model_that_knows_how(self):
        body = {"model": "foretoken-7m", "prompt": "Once upon", "max_tokens": 4, "random_seed": 1}
        answer = self.ask("/v1/fim/completions", body).json
        self.assertEqual(answer["object"], "chat.completion")
        self.assertEqual(answer["choices"][0]["message"]["role"], "assistant")
        self.assertEqual(answer["usage"]["completion_tokens"], 4)
        stream = self.ask("/v1/fim/completions", {**body, "stream": True}).events
        pieces = [one["choices"][0]["delta"]["content"] for one in stream]
        self.assertEqual("".join(pieces), answer["choices"][0]["message"]["content"])
        self.assertEqual(stream[-1]["usage"], answer["usage"])
        self.ask("/v1/fim/completions", {**body, "suffix": "the end"}, 501)

    def test_sglangs_loads(self):
        (load,) = self.get("/get_load", headers=self.key).json
        self.assertEqual((load["dp_rank"], load["num_reqs"]), (0, 0))
        self.assertEqual(self.get("/v1/loads", headers=self.key).json["dp_rank_count"], 1)
        self.get("/flush_cache", headers=self.key)


if __name__ == "__main__":
    door.main()
