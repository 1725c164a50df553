#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "conformance/layouts.h"
#include "engine/engine_impl.h"

// Data parallel engines that have the experts of a mixture together: whatever each of them has to
// do and when, none waits for ever for another, and what ends one ends all.

namespace foretoken {
namespace {

const test::DialledSet& mixture_set() { return test::DialledSet::of("Glm4MoeForCausalLM"); }

EngineConfig expert_config(const Layout& layout, const std::string& policy) {
  EngineConfig config = config_of({.num_drafts = 3,
                                   .drafter = "mtp",
                                   .policy = policy,
                                   .steps_in_flight = 2,
                                   .max_batched_tokens = 64},
                                  mixture_set());
  layout.apply(config);
  return config;
}

class ExpertEngines : public RankTest<Layout> {};

// Requests come alone and in bursts, end early, and leave engines idle in between.
void expect_no_hang(const Layout& layout, int count) {
  const auto engine = start_engine(expert_config(layout, "adaptive"));
  ASSERT_NE(engine, nullptr);
  std::mt19937 random(11);
  const auto requests = dialled_requests(mixture_set(), "mtp", 8, 16);
  std::atomic<int> num_open{0};
  for (int i = 0; i < count; ++i) {
    Request request = requests[random() % requests.size()];
    request.request_id.clear();
    request.sampling.max_tokens = 1 + static_cast<int>(random() % 16);
    if (random() % 3 == 0) request.speculative.enabled = false;
    std::string id;
    num_open.fetch_add(1);
    const Status status = engine->submit(
        std::move(request),
        [&](const RequestOutput& output) {
          EXPECT_TRUE(output.status.ok()) << output.status.message();
          if (output.request_finished) num_open.fetch_sub(1);
        },
        &id);
    ASSERT_TRUE(status.ok()) << status.message();
    if (random() % 4 == 0) engine->abort(id);
    if (random() % 6 > 0) continue;
    while (num_open.load() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 5));
  }
  while (num_open.load() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  expect_all_free(*engine);
}

TEST_P(ExpertEngines, LoadWithAbortsAndIdleEngines) {
  expect_no_hang(GetParam(), num_test_prompts(200) < 200 ? 40 : 200);
}

// Run by hand.
TEST_P(ExpertEngines, DISABLED_ThousandStartsAndAborts) { expect_no_hang(GetParam(), 1000); }

TEST_P(ExpertEngines, StartAndEndManyTimes) {
  const auto requests = dialled_requests(mixture_set(), "mtp", 1, 8);
  for (int i = 0; i < (num_test_prompts(200) < 200 ? 3 : 20); ++i) {
    const auto engine = start_engine(expert_config(GetParam(), "fixed"));
    ASSERT_NE(engine, nullptr);
    if (i % 2 == 0) {
      EXPECT_TRUE(engine->generate(requests)[0].status.ok());
    }
  }
}

// Where nobody has work nothing runs.
TEST_P(ExpertEngines, IdleEnginesRunNoSteps) {
  const auto engine = start_engine(expert_config(GetParam(), "fixed"));
  ASSERT_NE(engine, nullptr);
  ASSERT_TRUE(engine->generate(dialled_requests(mixture_set(), "mtp", 1, 4))[0].status.ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const int64_t num_steps = engine->stats().num_steps;
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_EQ(engine->stats().num_steps, num_steps);
}

INSTANTIATE_TEST_SUITE_P(Ranks, ExpertEngines,
                         testing::Values(Layout{.dp = 2, .ep = true}, Layout{.dp = 4, .ep = true},
                                         Layout{.tp = 2, .dp = 2, .ep = true}),
                         [](const auto& test) { return test.param.name(); });

// The requests of all of them end with the reason of the one that fails.
TEST(ExpertEnginesThatFail, EndTogether) {
  EngineConfig config = expert_config({.dp = 2, .ep = true}, "fixed");
  config.parallel.data_parallel_size = 1;
  auto links = local_links_of_engines(2, 1);
  group::RankLink* const plans = links[1][0].beside[1].get();
  std::vector<std::unique_ptr<EngineImpl>> engines(2);
  std::vector<std::thread> starts;
  for (size_t i = 0; i < engines.size(); ++i) {
    starts.emplace_back([&, i] {
      auto made = EngineImpl::create(config, {}, EngineImpl::Start::kServing, std::move(links[i]));
      ASSERT_TRUE(made.ok()) << made.status().message();
      engines[i] = std::move(made).value();
    });
  }
  for (std::thread& start : starts) start.join();
  ASSERT_TRUE(engines[0] != nullptr && engines[1] != nullptr);
  auto requests = dialled_requests(mixture_set(), "mtp", 1, 16);
  requests[0].sampling.max_tokens = 2000;
  requests[0].sampling.ignore_eos = true;
  std::vector<std::future<std::vector<RequestOutput>>> pending;
  for (auto& engine : engines) pending.push_back(engine->generate_async(requests[0]));
  plans->abort({StatusCode::kInternal, "engine 1 fell over"});
  for (auto& outputs : pending) {
    const Status status = outputs.get()[0].status;
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.message().find("engine 1 fell over"), std::string::npos) << status.message();
  }
  for (auto& engine : engines) EXPECT_FALSE(engine->generate(requests)[0].status.ok());
}

}  // namespace
}  // namespace foretoken
