#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <iostream>
#include <random>
#include <thread>
#include <utility>

#include "conformance/layouts.h"
#include "engine/engine_impl.h"
#include "group/wire/address.h"
#include "support/folders.h"
#include "support/gate.h"
#include "support/nccl.h"

// Data parallel engines that have the experts of a mixture together: whatever each of them has to
// do and when, none waits for ever for another, and what ends one ends all.

namespace foretoken {
namespace {

const test::DialledSet& mixture_set() { return test::DialledSet::of("Glm4MoeForCausalLM"); }

EngineConfig expert_config(const Layout& layout, const std::string& policy) {
  EngineConfig config = config_of({.num_draft_tokens = 3,
                                   .drafter = "mtp",
                                   .policy = policy,
                                   .steps_in_flight = 2,
                                   .max_batched_tokens = 64},
                                  mixture_set());
  layout.apply(config);
  return config;
}

// The bundled mixture, which was trained, with looked-up drafts and those of its own module.
EngineConfig bundled_experts(const Layout& layout) {
  const std::string folder =
      std::string(foretoken::kSourceFolder) + "/models/foretoken-2m-deepseek";
  EngineConfig config = config_of({.steps_in_flight = 2, .max_batched_tokens = 128}, folder);
  config.dtype = "float32";
  for (const char* method : {"ngram", "mtp"}) {
    SpeculativeConfig& drafter = config.speculative.emplace_back();
    drafter.method = method;
    drafter.num_speculative_tokens = 3;
    drafter.length_policy = "fixed";
  }
  layout.apply(config);
  return config;
}

constexpr const char* kAskedDrafters[] = {"", "ngram", "mtp"};

// Of all drafters, greedy and sampled, in this order. through_nccl: GPUs exchange through NCCL even
// where they reach each other's memory.
std::vector<std::vector<RequestOutput>> outputs_of_bundled(const Layout& layout,
                                                           bool through_nccl = false) {
  std::vector<std::vector<RequestOutput>> all;
  EngineConfig config = bundled_experts(layout);
  config.parallel.disable_custom_all_reduce = through_nccl;
  const auto engine = start_engine(config);
  for (const char* method : kAskedDrafters) {
    for (const bool sampled : {false, true}) {
      if (engine == nullptr) return {};
      all.push_back(
          run_in_batches(*engine, layout_requests(method, sampled, num_test_prompts(12))));
    }
  }
  expect_all_free(*engine);
  return all;
}

// Sums over ranks may round otherwise; what decides is the same.
int count_in_doubt(const std::vector<std::vector<RequestOutput>>& one,
                   const std::vector<std::vector<RequestOutput>>& several) {
  EXPECT_EQ(one.size(), several.size());
  int differing = 0;
  for (size_t i = 0; i < std::min(one.size(), several.size()); ++i) {
    const char* method = kAskedDrafters[i / 2];
    differing += count_undecided(one[i], several[i], i % 2 == 1, method);
    const RequestStats stats = sum_of_stats(several[i]);
    EXPECT_TRUE(*method == '\0' || i % 2 == 1 || stats.num_accepted_tokens > 0) << method;
  }
  return differing;
}

TEST(BundledExperts, IdsAreThoseOfOneRankAndOfEachLayout) {
  if (!missing_devices(2).empty()) GTEST_SKIP() << missing_devices(2);
  const auto base = outputs_of_bundled({});
  std::vector<std::vector<std::vector<RequestOutput>>> others;
  for (const Layout& layout : {Layout{.tp = 2, .ep = true}, Layout{.dp = 2, .ep = true},
                               Layout{.pp = 2, .dp = 2, .ep = true}}) {
    if (!missing_for(layout).empty()) continue;
    others.push_back(outputs_of_bundled(layout));
    const int differing = count_in_doubt(base, others.back());
    std::cout << "device=" << test_device_name() << " " << layout.name() << ": differing "
              << differing << " of " << base.size() * base[0].size() << std::endl;
    EXPECT_LE(differing, 2) << layout.name();
  }
  EXPECT_LE(count_in_doubt(others[0], others[1]), 2);
}

// Sums are added in the order of ranks by both routes.
TEST(BundledExperts, IdsThroughNcclAreThoseOfPeerMemory) {
  if (test_device_name() == "cpu") GTEST_SKIP() << "GPUs alone have two routes";
  if (!has_nccl()) GTEST_SKIP() << "libnccl.so.2 cannot be opened, nor VLLM_NCCL_SO_PATH";
  for (const Layout& layout : {Layout{.dp = 2, .ep = true}, Layout{.pp = 2, .dp = 2, .ep = true},
                               Layout{.tp = 2, .dp = 2, .ep = true}, Layout{.dp = 4, .ep = true}}) {
    if (const std::string missing = missing_for(layout); !missing.empty()) {
      std::cout << "SKIPPED " << layout.name() << ": " << missing << std::endl;
      continue;
    }
    const auto peers = outputs_of_bundled(layout), nccl = outputs_of_bundled(layout, true);
    ASSERT_EQ(peers.size(), nccl.size()) << layout.name();
    for (size_t i = 0; i < peers.size(); ++i) {
      ASSERT_EQ(peers[i].size(), nccl[i].size());
      for (size_t j = 0; j < peers[i].size(); ++j) {
        EXPECT_EQ(peers[i][j].token_ids, nccl[i][j].token_ids) << layout.name() << ' ' << j;
      }
      EXPECT_EQ(sum_of_stats(peers[i]).num_accepted_tokens,
                sum_of_stats(nccl[i]).num_accepted_tokens);
    }
  }
}

// Masks are drawn by each pass, of which an engine runs as many as the other one wants.
TEST(BundledExperts, TextUnderAGrammarIsThatOfOneRank) {
  if (!missing_devices(2).empty()) GTEST_SKIP() << missing_devices(2);
  std::vector<Request> requests = layout_requests("mtp", true, num_test_prompts(12));
  for (size_t i = 0; i < requests.size(); ++i) {
    if (i % 3 == 0) requests[i].speculative.method = "ngram";
    if (i % 2 == 0) continue;
    requests[i].sampling.structured_outputs.emplace();
    requests[i].sampling.structured_outputs->regex = "[a-f]{4}(-[0-9]{3}){3}";
  }
  std::vector<std::vector<RequestOutput>> outputs;
  for (const Layout& layout : {Layout{}, Layout{.dp = 2, .ep = true}}) {
    const auto engine = start_engine(bundled_experts(layout));
    ASSERT_NE(engine, nullptr);
    outputs.push_back(run_in_batches(*engine, requests));
    expect_all_free(*engine);
  }
  EXPECT_LE(count_undecided(outputs[0], outputs[1], true, "grammar"), 1);
  EXPECT_EQ(outputs[1][1].text.size(), 16u) << outputs[1][1].text;
}

// As two hosts, each with its own engines and requests; both are threads of this process.
std::vector<std::vector<RequestOutput>> outputs_of_two_hosts(const Layout& layout) {
  const int port = group::port_of(group::listen_tcp("127.0.0.1", 0).value());
  std::vector<std::vector<std::vector<RequestOutput>>> by_host(2);
  std::vector<std::thread> hosts;
  for (int host = 0; host < 2; ++host) {
    hosts.emplace_back([&, host] {
      EngineConfig config = bundled_experts(layout);
      config.parallel.nnodes = 2;
      config.parallel.node_rank = host;
      config.parallel.master_addr = "127.0.0.1";
      config.parallel.master_port = port;
      if (config.device == "cuda") config.device_ordinal = host * layout.num_ranks() / 2;
      const auto engine = start_engine(config);
      if (engine == nullptr) return;
      for (const char* method : kAskedDrafters) {
        const auto requests = layout_requests(method, host == 1, num_test_prompts(12));
        by_host[static_cast<size_t>(host)].push_back(run_in_batches(*engine, requests));
      }
      expect_all_free(*engine);
    });
  }
  for (std::thread& host : hosts) host.join();
  std::vector<std::vector<RequestOutput>> all;
  for (size_t i = 0; i < by_host[0].size() && i < by_host[1].size(); ++i) {
    all.push_back(by_host[0][i]);
    all.push_back(by_host[1][i]);
  }
  return all;
}

TEST(BundledExperts, IdsOfTwoHostsAreThoseOfOneRank) {
  if (!missing_devices(2).empty()) GTEST_SKIP() << missing_devices(2);
  const auto base = outputs_of_bundled({});
  for (const Layout& layout : {Layout{.dp = 2, .ep = true}, Layout{.dp = 4, .ep = true}}) {
    if (!missing_for(layout).empty()) continue;
    EXPECT_LE(count_in_doubt(base, outputs_of_two_hosts(layout)), 2) << layout.name();
  }
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
TEST_P(ExpertEngines, IdleEnginesSleep) {
  const auto engine = start_engine(expert_config(GetParam(), "fixed"));
  ASSERT_NE(engine, nullptr);
  ASSERT_TRUE(engine->generate(dialled_requests(mixture_set(), "mtp", 1, 4))[0].status.ok());
  // The last steps may still run; engines that go on for ever never have the same number again.
  int64_t num_steps = -1;
  EXPECT_TRUE(test::eventually([&] {
    const int64_t before = std::exchange(num_steps, engine->stats().num_steps);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    return num_steps == before && engine->stats().num_steps == before;
  }));
}

INSTANTIATE_TEST_SUITE_P(Ranks, ExpertEngines,
                         testing::Values(Layout{.dp = 2, .ep = true}, Layout{.dp = 4, .ep = true},
                                         Layout{.tp = 2, .dp = 2, .ep = true},
                                         Layout{.pp = 2, .dp = 2, .ep = true}),
                         [](const auto& test) { return test.param.name(); });

// The requests of all of them end with the reason of the one that fails.
TEST(ExpertEnginesThatFail, EndTogether) {
  if (!missing_devices(2).empty()) GTEST_SKIP() << missing_devices(2);
  EngineConfig config = expert_config({.dp = 2, .ep = true}, "fixed");
  config.parallel.data_parallel_size = 1;
  auto links = local_links_of_engines(2, 1);
  group::RankLink* const plans = links[1][0].beside[1].get();
  std::vector<std::unique_ptr<EngineImpl>> engines(2);
  std::vector<std::thread> starts;
  for (size_t i = 0; i < engines.size(); ++i) {
    starts.emplace_back([&, i, own = config]() mutable {
      if (own.device == "cuda") own.device_ordinal = static_cast<int>(i);
      auto made = EngineImpl::create(own, {}, EngineImpl::Start::kServing, std::move(links[i]));
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
