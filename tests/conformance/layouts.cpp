#include "conformance/layouts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "compat/compat.h"
#include "conformance/drafter_cases.h"
#include "device/device_traits.h"

namespace foretoken {
namespace {

constexpr int kLayoutTokens = 24;

}  // namespace

std::string Layout::name() const {
  std::string text;
  const auto add = [&](const char* letters, int size) {
    if (size > 1) text += (text.empty() ? "" : "x") + std::string(letters) + std::to_string(size);
  };
  add("TP", tp);
  add("PP", pp);
  add("DP", dp);
  add("DCP", dcp);
  if (ep) text += "EP";
  if (dbo) text += "DBO";
  return text.empty() ? "one rank" : text;
}

void Layout::apply(EngineConfig& config) const {
  config.cpu_threads = 1;
  config.parallel.tensor_parallel_size = tp;
  config.parallel.pipeline_parallel_size = pp;
  config.parallel.data_parallel_size = dp;
  config.parallel.enable_expert_parallel = ep;
  config.parallel.decode_context_parallel_size = dcp;
  config.parallel.enable_dbo = dbo;
  config.parallel.dbo_decode_token_threshold = 2;
  config.parallel.dbo_prefill_token_threshold = 2;
}

std::string missing_for(const Layout& layout) {
  const std::string missing = missing_devices(layout.num_ranks());
  if (!missing.empty() || test_device() == nullptr) return missing;
  return compat({.device = &device_traits(test_device()->type()),
                 .num_ranks = layout.tp * layout.pp,
                 .num_stages = layout.pp,
                 .num_engines = layout.dp,
                 .expert_parallel = layout.ep})
      .message();
}

void PrintTo(const Layout& layout, std::ostream* out) { *out << layout.name(); }

std::vector<Layout> test_layouts() {
  return {{.tp = 2}, {.tp = 4},          {.pp = 2},         {.pp = 4},
          {.dp = 2}, {.tp = 2, .pp = 2}, {.tp = 2, .dp = 2}};
}

EngineConfig layout_config(const Layout& layout, const std::vector<std::string>& methods) {
  EngineConfig config = config_of({.steps_in_flight = 2,
                                   .max_batched_tokens = 128,
                                   .num_blocks = 16 * 32,
                                   .prefix_caching = true},
                                  bundled_model());
  config.dtype = "float32";
  layout.apply(config);
  for (const std::string& name : methods) {
    config.speculative.push_back(bundled_drafter(name, 3).config);
  }
  return config;
}

std::unique_ptr<Engine> start_engine(const EngineConfig& config) {
  std::unique_ptr<Engine> engine;
  const Status status = make_engine(config, &engine);
  EXPECT_TRUE(status.ok()) << status.message();
  return engine;
}

std::vector<Request> layout_requests(const std::string& method, bool sampled, int count) {
  std::vector<Request> requests;
  const std::vector<std::string> prompts = bench_prompts(count);
  for (size_t i = 0; i < prompts.size(); ++i) {
    Request& request = requests.emplace_back();
    request.prompt = prompts[i];
    request.sampling.max_tokens = kLayoutTokens;
    request.sampling.temperature = sampled ? 0.8f : 0.0f;
    request.sampling.top_k = sampled ? 50 : 0;
    request.sampling.seed = 1000 + i;
    request.sampling.ignore_eos = true;
    request.sampling.logprobs = 2;
    request.speculative.enabled = !method.empty();
    request.speculative.method = method;
  }
  return requests;
}

std::vector<RequestOutput> run_in_batches(Engine& engine, const std::vector<Request>& requests) {
  std::vector<RequestOutput> outputs;
  constexpr size_t kBatch = 8;
  for (size_t begin = 0; begin < requests.size(); begin += kBatch) {
    const auto first = requests.begin() + static_cast<ptrdiff_t>(begin);
    const auto last =
        requests.begin() + static_cast<ptrdiff_t>(std::min(requests.size(), begin + kBatch));
    for (RequestOutput& output : engine.generate({first, last})) {
      EXPECT_TRUE(output.status.ok()) << output.status.message();
      outputs.push_back(std::move(output));
    }
  }
  return outputs;
}

RequestStats sum_of_stats(const std::vector<RequestOutput>& outputs) {
  RequestStats sum;
  for (const RequestOutput& output : outputs) sum += output.stats;
  return sum;
}

int count_undecided(const std::vector<RequestOutput>& one,
                    const std::vector<RequestOutput>& several, bool sampled,
                    const std::string& what, double max_gap) {
  EXPECT_EQ(one.size(), several.size());
  int differing = 0;
  for (size_t i = 0; i < std::min(one.size(), several.size()); ++i) {
    const auto& ids = one[i].token_ids;
    const auto& others = several[i].token_ids;
    if (ids == others) continue;
    ++differing;
    const auto at = static_cast<size_t>(
        std::mismatch(ids.begin(), ids.end(), others.begin(), others.end()).first - ids.begin());
    if (sampled) continue;
    const std::vector<Logprob>& top = one[i].logprobs.at(at).top;
    EXPECT_GE(top.size(), 2u);
    const double gap = top.size() < 2 ? 1 : double(top[0].logprob) - double(top[1].logprob);
    EXPECT_LT(std::abs(gap), max_gap) << what << ": prompt " << i << " differs at token " << at;
  }
  return differing;
}

}  // namespace foretoken
