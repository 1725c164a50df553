#include "conformance/harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "device/device_traits.h"
#include "engine/engine_impl.h"
#include "model/golden.h"
#include "support/folders.h"
#include "support/gate.h"

namespace foretoken {

std::string Variant::describe() const {
  return name + " [" + (num_draft_tokens > 0 ? drafter + " " + policy + ", " : "") + "drafts " +
         std::to_string(num_draft_tokens) + ", in flight " + std::to_string(steps_in_flight) +
         ", batch " + std::to_string(batch) + ", rows " + std::to_string(max_batched_tokens) +
         ", blocks " + std::to_string(num_blocks) + (prefix_caching ? ", prefix cache" : "") +
         (warm ? ", warm" : "") + (eager ? ", eager" : ", " + graph_mode) +
         (kv_cache_dtype == "auto" ? "" : ", KV " + kv_cache_dtype) + "]";
}

std::string test_device_name() {
  const char* name = std::getenv("FORETOKEN_TEST_DEVICE");
  return name != nullptr ? name : "cpu";
}

int num_test_prompts(int most) {
  const char* text = std::getenv("FORETOKEN_TEST_PROMPTS");
  constexpr int kFewest = 4;  // fewer preempt nobody
  return text != nullptr ? std::min(most, std::max(std::atoi(text), kFewest)) : most;
}

int num_repeats(int whole) {
  constexpr int kAll = 200;
  return num_test_prompts(kAll) < kAll ? whole / 5 : whole;
}

std::string bundled_model() {
  return std::string(foretoken::kSourceFolder) + "/models/foretoken-7m";
}

std::vector<std::string> bench_prompts(int count) {
  std::ifstream in(std::string(foretoken::kSourceFolder) + "/bench/prompts/prompts.jsonl");
  std::vector<std::string> prompts;
  for (std::string line; std::getline(in, line);) {
    prompts.push_back(nlohmann::json::parse(line).at("prompt"));
  }
  if (static_cast<int>(prompts.size()) <= count) return prompts;
  // Evenly spread, so that a short run sees every category.
  std::vector<std::string> chosen;
  for (int i = 0; i < count; ++i) chosen.push_back(prompts[prompts.size() * i / count]);
  return chosen;
}

EngineConfig config_of(const Variant& variant, const std::string& model) {
  EngineConfig config;
  config.model = model;
  config.device = test_device_name();
  config.max_model_len = 1024;
  config.max_num_seqs = 32;
  config.max_num_batched_tokens = variant.max_batched_tokens;
  config.num_gpu_blocks_override = variant.num_blocks > 0 ? variant.num_blocks : 32 * 64;
  config.enable_prefix_caching = variant.prefix_caching;
  config.enforce_eager = variant.eager;
  config.cudagraph_mode = variant.graph_mode;
  config.steps_in_flight = variant.steps_in_flight;
  config.batch_invariant = "on";
  config.kv_cache_dtype = variant.kv_cache_dtype;
  if (variant.num_draft_tokens == 0) return config;
  SpeculativeConfig& drafter = config.speculative.emplace_back();
  drafter.method = variant.drafter;
  drafter.model = variant.draft_model;
  drafter.num_speculative_tokens = variant.num_draft_tokens;
  drafter.length_policy = variant.policy;
  if (drafter.method == "ngram") {
    drafter.prompt_lookup_min = 1;
    drafter.prompt_lookup_max = 4;
  }
  return config;
}

EngineConfig config_of(const Variant& variant, const test::GoldenCase& golden) {
  EngineConfig config = config_of(variant, golden.folder);
  config.max_model_len = golden.max_model_len;
  config.hf_overrides = golden.hf_overrides;
  config.dtype = "float32";
  config.skip_tokenizer_init = true;
  return config;
}

EngineConfig config_of(const Variant& variant, const test::DialledSet& set) {
  Variant plain = variant;
  plain.num_draft_tokens = 0;
  EngineConfig config = config_of(plain, set.target(variant.drafter));
  if (variant.num_draft_tokens == 0) return config;
  config.speculative = {set.drafter(variant.drafter, variant.num_draft_tokens)};
  config.speculative[0].length_policy = variant.policy;
  return config;
}

std::vector<Request> dialled_requests(const test::DialledSet& set, const std::string& drafter,
                                      int count, int max_tokens) {
  const DialledCycle cycle(set.shape().vocab_size, set.shape().seed);
  std::vector<Request> requests;
  for (int i = 0; i < count; ++i) {
    Request& request = requests.emplace_back();
    request.sampling.max_tokens = max_tokens;
    request.sampling.temperature = 0;
    request.sampling.ignore_eos = true;
    if (test::DialledSet::traits(drafter).looks_up) {
      NgramDial dial;
      dial.acceptance = set.agreement();
      dial.num_output = max_tokens;
      dial.max_n = 4;
      dial.seed = static_cast<uint64_t>(i) + 1;
      request.prompt_token_ids = make_dialled_prompt(cycle, dial).value().ids;
      continue;
    }
    const int begin = 31 * i;
    for (int j = 0; j < 3 + 7 * (i % 9); ++j) {
      request.prompt_token_ids.push_back(cycle.at(begin + j));
    }
  }
  return requests;
}

RunResult run_requests(Engine& engine, const Variant& variant,
                       const std::vector<Request>& requests) {
  RunResult result;
  const auto batch = static_cast<size_t>(variant.batch);
  for (size_t begin = 0; begin < requests.size(); begin += batch) {
    const size_t end = std::min(requests.size(), begin + batch);
    const auto first = requests.begin();
    for (RequestOutput& output : engine.generate(std::vector<Request>(
             first + static_cast<ptrdiff_t>(begin), first + static_cast<ptrdiff_t>(end)))) {
      EXPECT_TRUE(output.status.ok()) << variant.describe() << ": " << output.status.message();
      result.ids.push_back(std::move(output.token_ids));
      result.stats += output.stats;
    }
  }
  return result;
}

RunResult run_dialled(const Variant& variant, const test::DialledSet& set,
                      const std::vector<Request>& requests, const TestHooks& hooks) {
  const auto engine = EngineImpl::create(config_of(variant, set), hooks);
  EXPECT_TRUE(engine.ok()) << variant.describe() << ": " << engine.status().message();
  RunResult result;
  for (int round = 0; engine.ok() && round < (variant.warm ? 2 : 1); ++round) {
    result = run_requests(*engine.value(), variant, requests);
  }
  if (engine.ok()) expect_all_free(*engine.value());
  return result;
}

namespace {

std::vector<Request> make_requests(const std::vector<std::string>& prompts, bool sampled,
                                   int max_tokens) {
  std::vector<Request> requests;
  for (size_t i = 0; i < prompts.size(); ++i) {
    Request request;
    request.prompt = prompts[i];
    request.sampling.max_tokens = max_tokens;
    request.sampling.temperature = sampled ? 0.8f : 0.0f;
    request.sampling.top_p = sampled ? 0.95f : 1.0f;
    request.sampling.top_k = sampled ? 50 : 0;
    request.sampling.seed = 1000 + i;
    request.sampling.ignore_eos = true;
    requests.push_back(std::move(request));
  }
  return requests;
}

}  // namespace

RunResult run_variant(const Variant& variant, const std::string& model,
                      const std::vector<std::string>& prompts, bool sampled, int max_tokens) {
  return run_config(config_of(variant, model), variant, prompts, sampled, max_tokens);
}

RunResult run_config(const EngineConfig& config, const Variant& variant,
                     const std::vector<std::string>& prompts, bool sampled, int max_tokens) {
  std::unique_ptr<Engine> engine;
  const Status status = make_engine(config, &engine);
  EXPECT_TRUE(status.ok()) << status.message();
  if (!status.ok()) return {};
  const std::vector<Request> requests = make_requests(prompts, sampled, max_tokens);
  if (variant.warm) (void)run_requests(*engine, variant, requests);
  RunResult result = run_requests(*engine, variant, requests);
  expect_all_free(*engine);
  return result;
}

size_t expect_cancel_harms_nobody(Engine& engine, Request victim, const Request& neighbour,
                                  const std::vector<int32_t>& expected, size_t after,
                                  VictimProgress* progress) {
  VictimProgress own;
  VictimProgress& told = progress != nullptr ? *progress : own;
  told.num_tokens = 0;
  told.done = false;
  victim.request_id = "victim";
  const Status status = engine.submit(std::move(victim), [&](const RequestOutput& output) {
    if (told.num_tokens.load() + output.token_ids.size() >= after && !output.finished) {
      engine.abort("victim");
    }
    told.num_tokens.fetch_add(output.token_ids.size());
    if (output.finished) told.done.store(true);
  });
  EXPECT_TRUE(status.ok()) << status.message();
  if (!status.ok()) return 0;
  if (after == 0) engine.abort("victim");
  EXPECT_EQ(engine.generate({neighbour})[0].token_ids, expected) << "after " << after;
  while (!told.done.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  expect_all_free(engine);
  return told.num_tokens.load();
}

RunResult run_alone(const EngineConfig& config, const std::vector<Request>& requests) {
  std::unique_ptr<Engine> engine;
  const Status status = make_engine(config, &engine);
  EXPECT_TRUE(status.ok()) << status.message();
  RunResult result;
  if (!status.ok()) return result;
  for (const RequestOutput& output : engine->generate(requests)) {
    EXPECT_TRUE(output.status.ok()) << output.status.message();
    result.ids.push_back(output.token_ids);
    result.stats += output.stats;
  }
  expect_all_free(*engine);
  return result;
}

void expect_all_free(const Engine& engine) {
  EngineStats stats;
  const bool all_free = test::eventually([&] {
    stats = engine.stats();
    return stats.num_free_blocks == stats.num_total_blocks &&
           stats.num_free_slots == stats.num_total_slots;
  });
  if (all_free) return;
  ADD_FAILURE() << "leaked: " << stats.num_free_blocks << " of " << stats.num_total_blocks
                << " blocks and " << stats.num_free_slots << " of " << stats.num_total_slots
                << " slots are free";
}

int count_differences(const RunResult& base, const RunResult& other, const std::string& what) {
  EXPECT_EQ(base.ids.size(), other.ids.size()) << what;
  int differing = 0;
  for (size_t i = 0; i < std::min(base.ids.size(), other.ids.size()); ++i) {
    if (base.ids[i] == other.ids[i]) continue;
    if (differing++ > 0) continue;
    const auto at = std::mismatch(base.ids[i].begin(), base.ids[i].end(), other.ids[i].begin(),
                                  other.ids[i].end());
    ADD_FAILURE() << what << ": prompt " << i << " differs from token "
                  << at.first - base.ids[i].begin() << " on";
  }
  return differing;
}

}  // namespace foretoken
