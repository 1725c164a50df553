#!/usr/bin/env python3
"""What boards, alerts and routers read of /metrics: names, labels and texts of bounds as vLLM has them."""

import re

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


if __name__ == "__main__":
    door.main()
