#include "engine/measure/step_profile.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "engine/dialled_engine.h"
#include "engine/engine_parts.h"
#include "engine/measure/profile_sizes.h"
#include "spec/cost_table_file.h"
#include "spec/guessed_costs.h"
#include "support/dialled_set.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

class StepProfileTest : public DialledEngine {
 protected:
  static StepProfileConfig profile_config(const EngineParts& parts, double seconds) {
    std::vector<std::string> names;
    if (parts.drafter != nullptr) names.emplace_back(parts.drafter->name());
    return {
        .drafter_names = names,
        .vocab_size = parts.model->config().vocab_size,
        .max_len = EngineParts::kMaxLen,
        .max_rows = EngineParts::kMaxRows,
        .num_blocks = EngineParts::kNumSlots * EngineParts::kMaxLen / EngineParts::kBlockSize + 1,
        .seconds = seconds};
  }
  static CostTable measure(EngineParts& parts, double seconds) {
    std::vector<Drafter*> drafters;
    if (parts.drafter != nullptr) drafters.push_back(parts.drafter.get());
    StepProfile profile(*parts.device, *parts.queue, *parts.runner, *parts.memory, drafters,
                        profile_config(parts, seconds));
    auto times = profile.measure();
    EXPECT_TRUE(times.ok()) << times.status().message();
    return times.ok() ? std::move(times).value() : CostTable();
  }
  static std::vector<int> sizes_of(const TimeCurve& curve) {
    std::vector<int> sizes;
    for (const TimeCurve::Point& point : curve.points()) sizes.push_back(point.size);
    return sizes;
  }
};

TEST_F(StepProfileTest, MeasuresEverySizeUpToAllSequencesWithAllDrafts) {
  const auto parts = EngineParts::make(folder(), 3);
  ASSERT_TRUE(parts.ok()) << parts.status().message();
  const CostTable times = measure(*parts.value(), 600);
  EXPECT_EQ(sizes_of(times.target), (std::vector<int>{1, 2, 4, 8, 16}));  // 4 sequences, 3 drafts
  ASSERT_EQ(times.drafters.size(), 1u);
  EXPECT_EQ(times.drafters[0].name, "ngram");
  EXPECT_TRUE(times.drafters[0].one_pass);
  EXPECT_TRUE(times.drafters[0].catch_up.empty());
  EXPECT_EQ(sizes_of(times.drafters[0].pass), (std::vector<int>{1, 2, 4}));
  for (const TimeCurve::Point& point : times.target.points()) EXPECT_GT(point.ns, 1000);
  std::vector<int> drafts;
  for (const VerifyTimes& each : times.verify) {
    drafts.push_back(each.drafts);
    EXPECT_EQ(sizes_of(each.full), (std::vector<int>{1, 2, 4}));
    EXPECT_EQ(sizes_of(each.idle), (std::vector<int>{1, 2, 4}));
  }
  EXPECT_EQ(drafts, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(times.known_tokens, EngineParts::kMaxLen - 5) << "no longer sequences than these";
  EXPECT_TRUE(times.context.empty());
}

// However short the time is, there is a slope.
TEST_F(StepProfileTest, AShortTimeMeasuresFewSizesFarApart) {
  const auto parts = EngineParts::make(folder(), 3, {GraphMode::kNone});
  ASSERT_TRUE(parts.ok()) << parts.status().message();
  const CostTable times = measure(*parts.value(), 0);
  EXPECT_EQ(sizes_of(times.target), (std::vector<int>{1, 4}));
  EXPECT_TRUE(times.verify.empty());
}

// No longer than it may take, and with a time for everything.
TEST_F(StepProfileTest, ABriefOneMeasuresWhatTimeAllowsAndGuessesTheRest) {
  const CostTable guess = guessed_cost_table({.weight_bytes = 1'000'000,
                                              .bytes_per_second = 10'000'000'000,
                                              .rows_per_step = 4,
                                              .drafters = {{"ngram", false, true, 0}}});
  for (const double seconds : {0.0, 0.25}) {
    const auto made = EngineParts::make(folder(), 3);
    ASSERT_TRUE(made.ok()) << made.status().message();
    EngineParts& parts = *made.value();
    StepProfile profile(*parts.device, *parts.queue, *parts.runner, *parts.memory,
                        {parts.drafter.get()}, profile_config(parts, seconds));
    const auto times = profile.measure_briefly(guess);
    ASSERT_TRUE(times.ok()) << times.status().message();
    EXPECT_EQ(times.value().is_guess, seconds == 0);
    EXPECT_TRUE(times.value().verify.empty());
    EXPECT_TRUE(times.value().drafters[0].covers(false, true, 3));
    if (seconds == 0) {
      EXPECT_EQ(times.value().target, guess.target);
      EXPECT_EQ(profile.seconds(), 0);
    } else {
      EXPECT_EQ(sizes_of(times.value().target), (std::vector<int>{1, 2, 4, 8, 16}));
      EXPECT_EQ(sizes_of(times.value().drafters[0].pass), (std::vector<int>{1, 2, 4}));
    }
  }
}

// What an engine of this configuration, whose one drafter is adaptive, measures at start.
CostTable profiled_times(EngineConfig config) {
  config.model = test::DialledSet::of().target();
  config.device = engine_test_device();
  config.speculative[0].length_policy = "adaptive";
  const test::ScratchFolder folder;
  config.step_time_table = folder.file("times.json");
  std::unique_ptr<Engine> engine;
  const Status made = make_engine(config, &engine);
  EXPECT_TRUE(made.ok()) << made.message();
  auto times = read_cost_table(config.step_time_table, std::vector<std::string>{"ngram"});
  EXPECT_TRUE(times.ok()) << times.status().message();
  return times.ok() ? std::move(times).value() : CostTable();
}

// A table of another device, model or number of ranks is not taken; one that does not tell is.
TEST(StepProfileEdges, ATableOfAnotherEngineIsRefused) {
  EngineConfig config;
  config.model = test::DialledSet::of().target();
  config.device = engine_test_device();
  config.max_model_len = 128;
  config.max_num_seqs = 2;
  config.num_gpu_blocks_override = 40;
  config.speculative = {test::DialledSet::of().drafter("ngram", 2)};
  config.speculative[0].length_policy = "adaptive";
  const test::ScratchFolder folder;
  config.step_time_table = folder.file("times.json");
  const auto start = [&config] {
    std::unique_ptr<Engine> engine;
    return make_engine(config, &engine);
  };
  ASSERT_TRUE(start().ok());
  ASSERT_TRUE(start().ok()) << "its own table";
  const std::vector<std::string> names = {"ngram"};
  CostTable times = read_cost_table(config.step_time_table, names).value();
  times.measured_on += " of another make";
  ASSERT_TRUE(write_cost_table(times, config.step_time_table).ok());
  const Status other = start();
  EXPECT_EQ(other.code(), StatusCode::kInvalidArgument);
  for (const char* said : {"of another make, but this is ", "delete it to measure again"}) {
    EXPECT_NE(other.message().find(said), std::string::npos) << other.message();
  }
  times.measured_on.clear();
  ASSERT_TRUE(write_cost_table(times, config.step_time_table).ok());
  EXPECT_TRUE(start().ok());
}

// Sequences of 1,000 tokens tell what context costs, which is the cost of most of their steps here.
TEST(StepProfileEdges, LongSequencesTellWhatContextCosts) {
  EngineConfig config;
  config.max_model_len = 1024;
  config.max_num_seqs = 8;
  config.num_gpu_blocks_override = 600;
  config.speculative = {test::DialledSet::of().drafter("ngram", 3)};
  const CostTable times = profiled_times(config);
  EXPECT_EQ(times.known_tokens, 256);
  ASSERT_EQ(times.context.size(), 2u);
  EXPECT_EQ(times.context[0].drafts, 0);
  EXPECT_EQ(times.context[1].drafts, 3);
  // So do those of 64.
  EXPECT_EQ(times.short_tokens, 64);
  ASSERT_EQ(times.short_steps.size(), 2u);
  EXPECT_EQ(times.short_steps[0].drafts, 0);
  EXPECT_EQ(times.short_steps[1].drafts, 3);
  ASSERT_FALSE(times.short_steps[1].shares.empty());
  EXPECT_EQ(times.short_steps[1].shares.points().front().size, 1);
  EXPECT_TRUE(times.drafters[0].short_catch_up.empty());
  EXPECT_FALSE(times.drafters[0].short_pass.empty());
}

// With any number of drafts, of the sizes that there was time for.
TEST(StepProfileEdges, RowsAreAsManyAsAskedFor) {
  EngineConfig config;
  config.max_model_len = 64;
  config.max_num_seqs = 256;
  config.max_num_batched_tokens = 512;
  config.num_gpu_blocks_override = 2000;
  const std::vector<int> asked = profile_sizes(512, true);
  for (const int drafts : {2, 4, 6}) {
    config.speculative = {test::DialledSet::of().drafter("ngram", drafts)};
    const CostTable times = profiled_times(config);
    EXPECT_GE(times.target.points().size(), 2u);
    for (const TimeCurve::Point& point : times.target.points()) {
      EXPECT_EQ(std::count(asked.begin(), asked.end(), point.size), 1)
          << point.size << " rows, " << drafts << " drafts";
    }
  }
}

template <class T>
void expect_zero(Queue& queue, const T* at, size_t count, const char* what) {
  std::vector<T> copy(count);
  queue.copy(copy.data(), at, count * sizeof(T));
  ASSERT_TRUE(queue.drain().ok());
  const auto* bytes = reinterpret_cast<const char*>(copy.data());
  EXPECT_TRUE(std::all_of(bytes, bytes + count * sizeof(T), [](char c) { return c == 0; })) << what;
}

// Equal ids would send all rows of a mixture to the same experts.
TEST_F(StepProfileTest, RowsHaveIdsOfTheirOwn) {
  const auto made = EngineParts::make(folder(), 3);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EngineParts& parts = *made.value();
  StepProfileConfig config = profile_config(parts, 600);
  uint64_t next = 0;
  int num_turns = 0;
  int widest_rows = 0;
  const StepTensors& tensors = parts.memory->tensors;
  // Looks at the rows of each sample's last step.
  config.begin_turn = [&](StepProfileConfig::Turn* turn) {
    turn->step = next;
    turn->blocks.clear();
    for (int32_t block = 40; block > 1; --block) turn->blocks.push_back(block);
    return Status();
  };
  config.end_turn = [&](uint64_t step) {
    StepCounts counts;
    std::vector<int32_t> ids(EngineParts::kMaxRows);
    parts.queue->copy(&counts, tensors.counts, sizeof counts);
    parts.queue->copy(ids.data(), tensors.token_ids, ids.size() * sizeof(int32_t));
    ASSERT_TRUE(parts.queue->drain().ok());
    if (step != next) {
      const std::set<int32_t> different(ids.begin(), ids.begin() + counts.num_rows);
      EXPECT_GE(different.size() + 2, static_cast<size_t>(counts.num_rows));
      widest_rows = std::max(widest_rows, counts.num_rows);
      ++num_turns;
    }
    next = step;
  };
  StepProfile profile(*parts.device, *parts.queue, *parts.runner, *parts.memory,
                      {parts.drafter.get()}, config);
  ASSERT_TRUE(profile.measure().ok());
  EXPECT_GT(num_turns, 5);
  EXPECT_EQ(widest_rows, 16) << "four sequences with three drafts each";
}

TEST_F(StepProfileTest, LeavesNoTrace) {
  const auto made = EngineParts::make(folder(), 3);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EngineParts& parts = *made.value();
  (void)measure(parts, 600);
  const BatchState& batch = parts.memory->batch;
  const auto slots = static_cast<size_t>(batch.num_slots) + 1;
  const size_t blocks = EngineParts::kNumSlots * EngineParts::kMaxLen / EngineParts::kBlockSize + 1;
  Queue& queue = *parts.queue;
  expect_zero(queue, batch.slots, slots, "slots");
  expect_zero(queue, batch.params, slots, "parameters");
  expect_zero(queue, batch.block_tables, slots * static_cast<size_t>(batch.max_blocks), "tables");
  expect_zero(queue, batch.page_headers, blocks, "page headers");
  expect_zero(queue, batch.token_pages, blocks * EngineParts::kBlockSize, "token pages");
  expect_zero(queue, parts.memory->step_counter, 1, "step counter");
  EXPECT_EQ(parts.memory->published.word->load(), 0u);
}

class ProfiledDrafter : public testing::TestWithParam<std::string> {};

// Through the engine, which measures when its policy is adaptive: the same text and, at fixed
// lengths, the same counts as an engine that never measured.
TEST_P(ProfiledDrafter, TheEngineRunsAsIfItHadNotMeasured) {
  const test::DialledSet& set = test::DialledSet::of();
  const auto run = [&](const std::string& policy) {
    EngineConfig config;
    config.model = set.target(GetParam());
    config.device = engine_test_device();
    config.max_model_len = 256;
    config.max_num_seqs = 4;
    config.max_num_batched_tokens = 64;
    config.num_gpu_blocks_override = 64;
    config.speculative = {set.drafter(GetParam(), 3)};
    config.speculative[0].length_policy = policy;
    std::unique_ptr<Engine> engine;
    const Status made = make_engine(config, &engine);
    EXPECT_TRUE(made.ok()) << made.message();
    Request request;
    const DialledCycle cycle(set.shape().vocab_size, set.shape().seed);
    for (int i = 0; i < 40; ++i) request.prompt_token_ids.push_back(cycle.at(i));
    request.sampling.max_tokens = 60;
    request.sampling.temperature = 0;
    return engine->generate({request, request, request})[2].token_ids;
  };
  EXPECT_EQ(run("adaptive"), run("off"));
}

INSTANTIATE_TEST_SUITE_P(All, ProfiledDrafter, testing::ValuesIn(test::DialledSet::kinds()),
                         [](const auto& kind) { return kind.param; });

// Fewer rows than sequences and than a sequence's drafts, fewer blocks than they need, a context
// that hardly holds the drafts, and one that is long enough to tell what context costs.
TEST(StepProfileEdges, SmallEnginesAreMeasuredToo) {
  const test::DialledSet& set = test::DialledSet::of();
  for (const int max_len : {2, 20, 64, 1024}) {
    for (const int blocks : {5, 200}) {
      EngineConfig config;
      config.model = set.target();
      config.device = engine_test_device();
      config.max_model_len = max_len;
      config.max_num_seqs = 32;
      config.max_num_batched_tokens = 8;
      config.num_gpu_blocks_override = blocks;
      config.speculative = {set.drafter("eagle", 16), set.drafter("ngram", 5),
                            set.drafter("draft_model", 1)};
      for (SpeculativeConfig& drafter : config.speculative) drafter.length_policy = "adaptive";
      std::unique_ptr<Engine> engine;
      const Status made = make_engine(config, &engine);
      ASSERT_TRUE(made.ok()) << made.message();
      Request request;
      request.prompt_token_ids = {5};
      request.sampling.max_tokens = std::min(max_len - 1, 63);
      const RequestOutput output = engine->generate({request})[0];
      EXPECT_TRUE(output.status.ok()) << output.status.message();
    }
  }
}

// Sequences that need one block as they decode and two when they have more to catch up.
TEST(StepProfileEdges, CatchUpThatReachesIntoOneMoreBlockStaysInsideTheMemory) {
  const test::DialledSet& set = test::DialledSet::of();
  EngineConfig config;
  config.model = set.target();
  config.device = engine_test_device();
  config.max_model_len = 104;
  config.max_num_seqs = 256;
  config.max_num_batched_tokens = 512;
  config.num_gpu_blocks_override = 169;
  config.speculative = {set.drafter("draft_model", 5)};
  config.speculative[0].length_policy = "adaptive";
  std::unique_ptr<Engine> engine;
  const Status made = make_engine(config, &engine);
  ASSERT_TRUE(made.ok()) << made.message();
}

// Pinned costs: written once, then read, so that two runs decide alike.
TEST_F(StepProfileTest, TheTableIsWrittenOnceAndThenRead) {
  const test::ScratchFolder tables;
  const std::string file = tables.file("step_times.json");
  EngineConfig adaptive = config(3);
  adaptive.speculative[0].length_policy = "adaptive";
  adaptive.step_time_table = file;
  const std::string measured = make(adaptive)->info().step_times;
  EXPECT_NE(measured, "");
  ASSERT_TRUE(std::filesystem::exists(file));
  EXPECT_EQ(make(adaptive)->info().step_times, measured);
  // Times of one draft do not tell what more of them cost.
  const test::DialledSet& set = test::DialledSet::of();
  EngineConfig pinned = adaptive;
  pinned.model = set.target();
  pinned.step_time_table = tables.file("one_draft.json");
  pinned.speculative = {set.drafter("draft_model", 1)};
  pinned.speculative[0].length_policy = "adaptive";
  std::unique_ptr<Engine> first;
  const Status made = make_engine(pinned, &first);
  ASSERT_TRUE(made.ok()) << made.message();
  first.reset();
  pinned.speculative[0].num_speculative_tokens = 3;
  EXPECT_NE(make_engine(pinned, &first).message().find("has no times for 3 drafts"),
            std::string::npos);
  EngineConfig other = adaptive;
  other.speculative[0].length_policy = "fixed";
  EXPECT_EQ(make(other)->info().step_times, "");
  std::ofstream(file) << "{\"target\": 3}";
  std::unique_ptr<Engine> engine;
  EXPECT_NE(make_engine(adaptive, &engine).message().find(file), std::string::npos);
}

}  // namespace
}  // namespace foretoken
