#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <random>

#include "base/thread_role.h"
#include "conformance/harness.h"
#include "support/sanitizers.h"

// No allocation on engine, worker and pool threads once the engine is warm. malloc itself is
// replaced here, so that allocations inside libraries count too; oneDNN's execute and the capture
// of a graph are excepted.

#if FT_UNDER_ASAN || FT_UNDER_TSAN
#define FT_HOOK_MALLOC 0
#else
#define FT_HOOK_MALLOC 1
#endif

namespace {

std::atomic<bool> counting{false};
std::atomic<int64_t> num_allocations{0};
std::atomic<int64_t> num_elsewhere{0};  // shows that the hook sees allocations at all

#if FT_HOOK_MALLOC
void note_allocation() {
  if (!counting.load(std::memory_order_relaxed)) return;
  using foretoken::ThreadRole;
  const ThreadRole role = foretoken::thread_role;
  if (role == ThreadRole::kOther || role == ThreadRole::kOutput) {
    num_elsewhere.fetch_add(1);
    return;
  }
  if (foretoken::foreign_allocation_depth > 0) return;
  num_allocations.fetch_add(1);
}
#endif

}  // namespace

#if FT_HOOK_MALLOC
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* pointer, size_t size);
void* malloc(size_t size) {
  note_allocation();
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  note_allocation();
  return __libc_calloc(count, size);
}
void* realloc(void* pointer, size_t size) {
  note_allocation();
  return __libc_realloc(pointer, size);
}
}
#endif

namespace foretoken {
namespace {

class ForbidMultiples final : public LogitsProcessor {
 public:
  void apply(const LogitsContext& context, std::span<float> logits) const override {
    const size_t step = 5 + context.output_ids.size() % 3;
    for (size_t id = 0; id < logits.size(); id += step) logits[id] = -1000.0f;
  }
};

enum class Kind { kPlain, kEveryField, kPooling };

void add_fields(Kind kind, Request& request) {
  if (kind == Kind::kPlain) return;
  if (kind == Kind::kPooling) {
    request.pooling = Pooling::kMean;
    return;
  }
  SamplingParams& sampling = request.sampling;
  sampling.min_p = 0.01f;
  sampling.repetition_penalty = 1.2f;
  sampling.presence_penalty = 0.5f;
  sampling.frequency_penalty = 0.5f;
  sampling.logit_bias = {{20, 2.0f}, {30, -2.0f}};
  sampling.bad_words = {"the", "and then"};
  sampling.allowed_token_ids.emplace();
  for (int32_t id = 10; id < 1500; ++id) sampling.allowed_token_ids->push_back(id);
  sampling.logprobs = 4;
  sampling.prompt_logprobs = 2;
  sampling.logits_processors = {std::make_shared<ForbidMultiples>()};
  sampling.n = sampling.temperature > 0 ? 2 : 1;
}

// Batches of one kind after the other. A set of features that is new to a bucket of rows captures a
// graph, which may allocate.
void run_steps(Engine& engine, int64_t num_steps) {
  std::mt19937 random(3);
  const int64_t end = engine.stats().num_steps + num_steps;
  for (int batch = 0; engine.stats().num_steps < end; ++batch) {
    std::vector<Request> requests;
    for (int i = 0; i < 40; ++i) {
      Request request;
      for (int j = 0; j < 5 + i; ++j) {
        request.prompt_token_ids.push_back(10 + static_cast<int32_t>(random() % 300));
      }
      request.sampling.max_tokens = 5 + static_cast<int>(random() % 20);
      request.sampling.temperature = i % 2 == 0 ? 0.0f : 1.0f;
      request.sampling.top_k = i % 4 == 1 ? 20 : 0;
      request.sampling.top_p = i % 4 == 3 ? 0.9f : 1.0f;
      add_fields(static_cast<Kind>(batch % 3), request);
      requests.push_back(std::move(request));
    }
    for (const RequestOutput& output : engine.generate(std::move(requests))) {
      ASSERT_TRUE(output.status.ok()) << output.status.message();
    }
  }
}

TEST(Allocation, NoneInAThousandWarmSteps) {
  if (!FT_HOOK_MALLOC) GTEST_SKIP() << "sanitizers own malloc";
  std::unique_ptr<Engine> engine;
  const Status made = make_engine(config_of({.num_draft_tokens = 4,
                                             .steps_in_flight = 2,
                                             .max_batched_tokens = 64,
                                             .num_blocks = 200,
                                             .prefix_caching = true},
                                            bundled_model()),
                                  &engine);
  ASSERT_TRUE(made.ok()) << made.message();
  run_steps(*engine, 200);
  counting.store(true);
  run_steps(*engine, num_repeats(1000));
  counting.store(false);
  EXPECT_EQ(num_allocations.load(), 0);
  EXPECT_GT(num_elsewhere.load(), 0);
  EXPECT_GE(engine->stats().num_finished_requests, 200);
}

// The same with drafters that have KV, two in one engine, and lengths that change.
TEST(Allocation, NoneWithDraftersOfTheAdaptivePolicy) {
  if (!FT_HOOK_MALLOC) GTEST_SKIP() << "sanitizers own malloc";
  const test::DialledSet& set = test::DialledSet::of();
  EngineConfig config = config_of({.steps_in_flight = 2, .max_batched_tokens = 64}, set.target());
  config.max_num_seqs = 8;
  config.speculative = {set.drafter("eagle", 3), set.drafter("draft_model", 4)};
  for (SpeculativeConfig& drafter : config.speculative) drafter.length_policy = "adaptive";
  std::unique_ptr<Engine> engine;
  const Status made = make_engine(config, &engine);
  ASSERT_TRUE(made.ok()) << made.message();
  const auto run = [&](int num_rounds) {
    for (int round = 0; round < num_rounds; ++round) {
      std::vector<Request> requests = dialled_requests(set, "eagle", 1 + round % 12, 40);
      for (size_t i = 0; i < requests.size(); i += 2) {
        requests[i].speculative.method = "draft_model";
      }
      for (const RequestOutput& output : engine->generate(std::move(requests))) {
        ASSERT_TRUE(output.status.ok()) << output.status.message();
      }
    }
  };
  run(12);
  counting.store(true);
  run(num_repeats(60));
  counting.store(false);
  EXPECT_EQ(num_allocations.load(), 0);
  EXPECT_GT(engine->stats().requests.num_accepted_tokens, 0);
}

}  // namespace
}  // namespace foretoken
