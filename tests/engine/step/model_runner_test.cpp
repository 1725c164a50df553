#include "engine/step/model_runner.h"

#include <map>
#include <set>

#include "engine/dialled_engine.h"
#include "engine/engine_parts.h"
#include "engine/step/plan_encoder.h"

namespace foretoken {
namespace {

constexpr std::chrono::milliseconds kLong{60000};

class ModelRunnerTest : public DialledEngine {
 protected:
  // Queue calls of a step: of one that computes prompts, and of one where all decode.
  using Launches = std::array<std::set<int>, 2>;

  // Runs requests to their end, one step at a time. Returns the ids of each.
  static std::vector<std::vector<int32_t>> run(EngineParts& parts, int count,
                                               Launches* launches = nullptr) {
    std::vector<std::unique_ptr<RequestState>> records;
    for (int i = 0; i < count; ++i) {
      Request one = request(20 * i, 5 + 17 * i, 12);
      one.sampling.temperature = i % 2 == 0 ? 0.0f : 1.0f;
      one.sampling.seed = 7;
      records.push_back(parts.record(std::move(one), static_cast<uint64_t>(i)));
      parts.scheduler->add(records.back()->sequence);
    }
    StepPlan plan;
    for (uint64_t step = 0; parts.scheduler->plan(plan, parts.grants); ++step) {
      plan.step = step;
      encode_plan(plan, parts.scheduler->blocks(), parts.memory->limits(),
                  parts.runner->entry(step));
      parts.counting->clear();
      parts.runner->submit(plan);
      if (launches != nullptr) {
        const bool decodes = plan.num_new_ids == 0;
        (*launches)[decodes].insert(parts.counting->num_launches());
        EXPECT_EQ(parts.counting->num_others, 0);
      }
      const Status status = parts.queue->wait(parts.memory->published, step + 1, kLong);
      EXPECT_TRUE(status.ok()) << status.message();
      if (!status.ok()) break;
      const ResultView result = parts.runner->result(step);
      EXPECT_EQ(result.header->step, step);
      for (size_t i = 0; i < plan.spans.size(); ++i) {
        const SpanResult& span = result.spans[i];
        (void)parts.scheduler->reconcile(
            plan.spans[i], {.ids = {span.ids, static_cast<size_t>(span.num_committed)},
                            .ended = span.finish != 0,
                            .draft_missing = span.draft_missing});
      }
    }
    std::vector<std::vector<int32_t>> ids;
    for (const auto& record : records) {
      const Sequence& sequence = record->sequence;
      EXPECT_EQ(sequence.state, SequenceState::kReleased);
      ids.emplace_back(sequence.tokens.begin() + sequence.prompt_len, sequence.tokens.end());
    }
    return ids;
  }

  static std::vector<std::vector<int32_t>> run_with(int num_draft_tokens, const GraphConfig& graphs,
                                                    Launches* launches = nullptr) {
    auto parts = EngineParts::make(folder(), num_draft_tokens, graphs);
    EXPECT_TRUE(parts.ok()) << parts.status().message();
    return parts.ok() ? run(*parts.value(), 4, launches) : std::vector<std::vector<int32_t>>();
  }
};

constexpr GraphMode kAllModes[] = {GraphMode::kNone, GraphMode::kPiecewise, GraphMode::kFull,
                                   GraphMode::kFullDecodeOnly, GraphMode::kFullAndPiecewise};

TEST_F(ModelRunnerTest, EveryGraphModeGivesEqualIds) {
  const auto plain = run_with(0, {GraphMode::kNone});
  ASSERT_EQ(plain.size(), 4u);
  EXPECT_EQ(plain[0], expected(0, 5, 12));
  EXPECT_EQ(plain[2], expected(40, 39, 12));
  for (const GraphMode mode : kAllModes) {
    for (const int num_draft_tokens : {0, 3}) {
      EXPECT_EQ(run_with(num_draft_tokens, {mode}), plain)
          << graph_mode_name(mode) << num_draft_tokens;
      EXPECT_EQ(run_with(num_draft_tokens, {mode, {1, 6, 20}}), plain) << graph_mode_name(mode);
    }
  }
}

// A whole graph is one launch, with drafts and without. Of pieces there are the attention of each
// layer, which drafts of n-grams have not, and graphs before, between and after.
TEST_F(ModelRunnerTest, LaunchesOfAStep) {
  const auto parts = EngineParts::make(folder(), 0, {GraphMode::kNone});
  ASSERT_TRUE(parts.ok()) << parts.status().message();
  const int num_layers = parts.value()->model->config().num_layers;
  const std::set<int> one = {1}, pieces = {2 * num_layers + 1};
  std::map<int, Launches> ops;
  for (const int num_draft_tokens : {0, 3}) {
    (void)run_with(num_draft_tokens, {GraphMode::kNone}, &ops[num_draft_tokens]);
    const auto launches_of = [&](GraphMode mode) {
      Launches launches;
      (void)run_with(num_draft_tokens, {mode}, &launches);
      return launches;
    };
    const Launches& each = ops[num_draft_tokens];
    // A layer is rope_kv, attention and what follows to the next one.
    EXPECT_GT(*each[1].begin(), 3 * num_layers + 5);
    EXPECT_EQ(launches_of(GraphMode::kFull), (Launches{one, one}));
    EXPECT_EQ(launches_of(GraphMode::kPiecewise), (Launches{pieces, pieces}));
    EXPECT_EQ(launches_of(GraphMode::kFullDecodeOnly), (Launches{each[0], one}));
    EXPECT_EQ(launches_of(GraphMode::kFullAndPiecewise), (Launches{pieces, one}));
  }
  EXPECT_GT(*ops[3][1].rbegin(), *ops[0][1].rbegin());
}

// A step of more rows than the largest graph runs op by op.
TEST_F(ModelRunnerTest, SizesBoundTheGraphs) {
  const auto parts = EngineParts::make(folder(), 0, {GraphMode::kFull, {4}});
  ASSERT_TRUE(parts.ok()) << parts.status().message();
  EXPECT_EQ(parts.value()->runner->graphs().size(), 1);
  Launches launches;
  (void)run(*parts.value(), 4, &launches);
  EXPECT_EQ(launches[1], (std::set<int>{1}));
  EXPECT_GT(*launches[0].begin(), 1);
  EXPECT_EQ(parts.value()->runner->graphs().size(), 1);
}

TEST_F(ModelRunnerTest, AStepThatCannotBeRecordedRunsOpByOp) {
  const auto plain = run_with(3, {GraphMode::kNone});
  for (const GraphMode mode : {GraphMode::kFull, GraphMode::kPiecewise}) {
    const auto parts = EngineParts::make(folder(), 3, {mode}, 2);
    ASSERT_TRUE(parts.ok()) << parts.status().message();
    EXPECT_EQ(run(*parts.value(), 4), plain) << graph_mode_name(mode);
    EXPECT_LT(parts.value()->counting->captures_left, 0);
  }
}

// The clock of a step moves on from part to part and from step to step.
TEST_F(ModelRunnerTest, StepsAreStamped) {
  for (const int num_draft_tokens : {0, 3}) {
    const auto parts = EngineParts::make(folder(), num_draft_tokens);
    ASSERT_TRUE(parts.ok()) << parts.status().message();
    (void)run(*parts.value(), 2);
    ASSERT_TRUE(parts.value()->queue->drain().ok());
    const StepStamps* stamps = parts.value()->memory->stamps;
    const uint64_t num_steps = parts.value()->memory->published.word->load();
    ASSERT_GT(num_steps, uint64_t{kStepRingSize});
    int64_t before = 0;
    for (uint64_t step = num_steps - kStepRingSize; step < num_steps; ++step) {
      const StepStamps& now = stamps[step % kStepRingSize];
      EXPECT_GE(now.begin_ns, before);
      EXPECT_GE(now.published_ns, now.begin_ns);
      EXPECT_GE(now.end_ns, now.published_ns);
      before = now.end_ns;
    }
  }
}

TEST_F(ModelRunnerTest, BucketsDoubleUpToTheLargestStep) {
  const auto parts = EngineParts::make(folder(), 0, {GraphMode::kNone});
  ASSERT_TRUE(parts.ok()) << parts.status().message();
  EXPECT_EQ(parts.value()->runner->num_buckets(), 7);  // 1, 2, 4, 8, 16, 32, 48
  EXPECT_GT(parts.value()->runner->scratch_bytes(), 0);
}

TEST_F(ModelRunnerTest, RingEntriesRepeatAfterTheRingAndNotBefore) {
  const auto parts = EngineParts::make(folder(), 0, {GraphMode::kNone});
  ASSERT_TRUE(parts.ok()) << parts.status().message();
  const ModelRunner& runner = *parts.value()->runner;
  for (uint64_t step = 0; step < 4; ++step) {
    EXPECT_EQ(runner.entry(step).header, runner.entry(step + kStepRingSize).header);
    EXPECT_EQ(runner.result(step).header, runner.result(step + kStepRingSize).header);
    EXPECT_NE(runner.entry(step).header, runner.entry(step + 1).header);
    EXPECT_NE(runner.result(step).header, runner.result(step + 1).header);
  }
}

}  // namespace
}  // namespace foretoken
