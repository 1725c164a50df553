#include "engine/model_runner.h"

#include "engine/dialled_engine.h"
#include "engine/engine_parts.h"
#include "engine/plan_encoder.h"

namespace foretoken {
namespace {

constexpr std::chrono::milliseconds kLong{60000};

class ModelRunnerTest : public DialledEngine {
 protected:
  // Runs requests to their end, one step at a time. Returns the ids of each.
  static std::vector<std::vector<int32_t>> run(EngineParts& parts, int count) {
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
      parts.runner->submit(plan);
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

  static std::vector<std::vector<int32_t>> run_with(int num_drafts, bool graphs) {
    auto parts = EngineParts::make(folder(), num_drafts, graphs);
    EXPECT_TRUE(parts.ok()) << parts.status().message();
    return parts.ok() ? run(*parts.value(), 4) : std::vector<std::vector<int32_t>>();
  }
};

TEST_F(ModelRunnerTest, GraphsAndEagerStepsGiveEqualIds) {
  const auto plain = run_with(0, false);
  ASSERT_EQ(plain.size(), 4u);
  EXPECT_EQ(plain[0], expected(0, 5, 12));
  EXPECT_EQ(plain[2], expected(40, 39, 12));
  EXPECT_EQ(run_with(0, true), plain);
  EXPECT_EQ(run_with(3, false), plain);
  EXPECT_EQ(run_with(3, true), plain);
}

TEST_F(ModelRunnerTest, BucketsDoubleUpToTheLargestStep) {
  const auto parts = EngineParts::make(folder(), 0, false);
  ASSERT_TRUE(parts.ok()) << parts.status().message();
  EXPECT_EQ(parts.value()->runner->num_buckets(), 7);  // 1, 2, 4, 8, 16, 32, 48
  EXPECT_GT(parts.value()->runner->scratch_bytes(), 0);
}

TEST_F(ModelRunnerTest, RingEntriesRepeatAfterTheRingAndNotBefore) {
  const auto parts = EngineParts::make(folder(), 0, false);
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
