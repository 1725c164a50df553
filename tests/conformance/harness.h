#pragma once
#include <foretoken/engine.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/step/test_hooks.h"
#include "support/dialled_set.h"

namespace foretoken::test {
struct GoldenCase;
}

namespace foretoken {

// One way to run the same requests. Every variant must give the same ids.
struct Variant {
  std::string name = "base";
  int num_draft_tokens = 0;       // 0: no drafter; otherwise the bound of the one below
  std::string drafter = "ngram";  // a method, or a kind of test::DialledSet
  std::string draft_model = {};   // its folder, where a method needs one
  std::string policy = "fixed";   // SpeculativeConfig::length_policy
  int steps_in_flight = 1;
  int batch = 1;  // requests submitted together
  int max_batched_tokens = 512;
  int num_blocks = 0;  // 0: plenty; few of them force preemption
  bool prefix_caching = false;
  bool warm = false;  // the second of two runs in one engine counts
  bool eager = false;
  std::string graph_mode = "FULL";
  std::string kv_cache_dtype = "auto";

  std::string describe() const;
};

struct RunResult {
  std::vector<std::vector<int32_t>> ids;  // by prompt
  RequestStats stats;                     // sums over the requests of the counted run
};

// FORETOKEN_TEST_DEVICE (cpu or cuda) and FORETOKEN_TEST_PROMPTS (4 at least, default 200;
// sanitizer builds run fewer) choose where and how much.
std::string test_device_name();
int num_test_prompts(int most);
// `whole`, or a fifth of it in a run on fewer prompts than there are: of what is done many times
// over.
int num_repeats(int whole);

// The bundled model, and `count` of the prompts in bench/prompts/prompts.jsonl.
std::string bundled_model();
std::vector<std::string> bench_prompts(int count);

EngineConfig config_of(const Variant& variant, const std::string& model);

// The same on a dialled target with the dialled drafter that the variant names.
EngineConfig config_of(const Variant& variant, const test::DialledSet& set);
// In float32 on ids alone, as the references of a golden were made.
EngineConfig config_of(const Variant& variant, const test::GoldenCase& golden);

// Greedy requests that begin at `count` places of the target's cycle, with prompts of different
// lengths; for n-gram drafts the prompts are dialled to the set's agreement.
std::vector<Request> dialled_requests(const test::DialledSet& set, const std::string& drafter,
                                      int count, int max_tokens);

// Runs the requests, `variant.batch` of them together.
RunResult run_requests(Engine& engine, const Variant& variant,
                       const std::vector<Request>& requests);

// The same in a fresh engine on the set (twice where
// the variant is warm; the second run counts) and expects all slots and blocks to be free again.
RunResult run_dialled(const Variant& variant, const test::DialledSet& set,
                      const std::vector<Request>& requests, const TestHooks& hooks = {});

// Runs every prompt for `max_tokens` tokens: greedy, or with temperature 0.8, top_p 0.95, top_k 50
// and a seed of its own.
RunResult run_variant(const Variant& variant, const std::string& model,
                      const std::vector<std::string>& prompts, bool sampled, int max_tokens);

// The same with a configuration of the caller's.
RunResult run_config(const EngineConfig& config, const Variant& variant,
                     const std::vector<std::string>& prompts, bool sampled, int max_tokens);

// What a victim's callback has been told.
struct VictimProgress {
  std::atomic<size_t> num_tokens{0};
  std::atomic<bool> done{false};
};

// Aborts `victim` once it has given `after` tokens, while `neighbour` runs beside it, and fails
// unless the neighbour's ids are `expected` and everything is free afterwards. Returns the tokens
// that the victim gave; `progress`, where there is one, grows with them.
size_t expect_cancel_harms_nobody(Engine& engine, Request victim, const Request& neighbour,
                                  const std::vector<int32_t>& expected, size_t after,
                                  VictimProgress* progress = nullptr);

// Fails unless every block and slot is free within two minutes: the last step in flight may still
// hold some when the last output arrives.
void expect_all_free(const Engine& engine);

// Starts an engine for the requests alone and runs them all at once; every one must succeed, and
// nothing may be left of them.
RunResult run_alone(const EngineConfig& config, const std::vector<Request>& requests);

// Number of prompts whose ids differ; prints the first difference.
int count_differences(const RunResult& base, const RunResult& other, const std::string& what);

}  // namespace foretoken
