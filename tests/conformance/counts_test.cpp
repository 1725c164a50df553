#include <gtest/gtest.h>

#include <atomic>
#include <iostream>

#include "conformance/harness.h"
#include "dialled/dialled_writer.h"
#include "engine/engine_impl.h"
#include "support/held_queue.h"
#include "support/sanitizers.h"
#include "support/scratch_folder.h"

// Drafted and accepted counts must not depend on the number of steps in flight: a race that leaves
// the text right still shows here. Random weights accept nothing, so a dialled checkpoint and
// dialled prompts give an acceptance between 0.3 and 0.95.

namespace foretoken {
namespace {

constexpr int kOutput = 96;
constexpr int kCountedDrafts = 4;

struct DialledRun {
  std::vector<std::vector<int32_t>> ids;
  int64_t drafted = 0;
  int64_t accepted = 0;
  bool failed = false;
};

// A dialled checkpoint of one architecture and prompts for it.
struct DialledModel {
  explicit DialledModel(const std::string& architecture) {
    DialledShape shape;
    shape.architecture = architecture;
    shape.vocab_size = 512;
    const Status written = write_dialled_checkpoint(folder.path(), shape);
    EXPECT_TRUE(written.ok()) << written.message();
    const DialledCycle cycle(shape.vocab_size, shape.seed);
    for (int i = 0; i < 16; ++i) {
      NgramDial dial;
      dial.acceptance = 0.4 + 0.03 * i;
      dial.num_output = kOutput;
      dial.num_draft_tokens = kCountedDrafts;
      dial.min_n = 1;
      dial.max_n = 4;
      dial.seed = static_cast<uint64_t>(i) + 1;
      prompts.push_back(make_dialled_prompt(cycle, dial).value());
    }
  }

  // `hold`, where there is one, holds the first steps.
  DialledRun run(int steps_in_flight, int batch, TestHooks hooks = {},
                 void (test::HeldQueue::*hold)() = nullptr) const {
    EngineConfig config = config_of(
        {.num_draft_tokens = kCountedDrafts, .steps_in_flight = steps_in_flight}, folder.path());
    config.max_model_len = 2048;
    config.num_gpu_blocks_override = 16 * 128;
    std::atomic<test::HeldQueue*> queue{nullptr};
    if (hold != nullptr) hooks.wrap_queue = test::wrap_into(&queue);
    auto engine = EngineImpl::create(config, hooks);
    EXPECT_TRUE(engine.ok()) << engine.status().message();
    if (hold != nullptr && engine.ok()) (queue.load()->*hold)();
    DialledRun result;
    result.failed = !engine.ok();
    for (size_t begin = 0; engine.ok() && begin < prompts.size();
         begin += static_cast<size_t>(batch)) {
      std::vector<Request> requests;
      for (size_t i = begin; i < begin + static_cast<size_t>(batch); ++i) {
        Request request;
        request.prompt_token_ids = prompts[i].ids;
        request.sampling.max_tokens = kOutput;
        request.sampling.temperature = 0;
        request.sampling.ignore_eos = true;
        requests.push_back(std::move(request));
      }
      for (const RequestOutput& output : engine.value()->generate(std::move(requests))) {
        result.failed = result.failed || !output.status.ok();
        result.ids.push_back(output.token_ids);
        result.drafted += output.stats.num_draft_tokens;
        result.accepted += output.stats.num_accepted_tokens;
      }
    }
    return result;
  }

  const test::ScratchFolder folder;
  std::vector<DialledPrompt> prompts;
};

void expect_equal(const DialledRun& run, const DialledRun& base, const std::string& what) {
  EXPECT_EQ(run.ids, base.ids) << what;
  EXPECT_EQ(run.drafted, base.drafted) << what;
  EXPECT_EQ(run.accepted, base.accepted) << what;
}

// Every architecture: windows shorter than the texts, layers without positions, soft caps and
// normed queries included.
class CountsOf : public ::testing::TestWithParam<std::string> {};

TEST_P(CountsOf, EqualForEveryNumberOfStepsInFlightAndAsDialled) {
  const DialledModel model(GetParam());
  const DialledRun one = model.run(1, 16);
  ASSERT_FALSE(one.failed);
  const double acceptance = static_cast<double>(one.accepted) / static_cast<double>(one.drafted);
  std::cout << "device=" << test_device_name() << " " << GetParam() << ": drafted " << one.drafted
            << ", accepted " << one.accepted << ", acceptance " << acceptance << "\n";
  EXPECT_GT(acceptance, 0.3);
  EXPECT_LT(acceptance, 0.95);
  for (const int steps_in_flight : {2, 3}) {
    expect_equal(model.run(steps_in_flight, 16), one,
                 std::to_string(steps_in_flight) + " in flight");
  }
  expect_equal(model.run(2, 1), one, "alone");
  DialledRun dialled;
  for (const DialledPrompt& prompt : model.prompts) {
    dialled.ids.push_back(prompt.expected_output);
    dialled.drafted += prompt.num_drafted;
    dialled.accepted += prompt.num_accepted;
  }
  expect_equal(one, dialled, "the dial");
}

INSTANTIATE_TEST_SUITE_P(All, CountsOf, testing::ValuesIn(dialled_architectures()),
                         [](const auto& test) { return test.param; });

// The test must be able to fail: a plan that overwrites one in flight changes ids or counts, or is
// noticed by the upload itself.
TEST(Counts, PlantedRaceIsSeen) {
#if FT_UNDER_TSAN
  GTEST_SKIP() << "PlantedRace in ThreadSanitizer builds: tools/check_planted_race.sh";
#endif
  const DialledModel model("LlamaForCausalLM");
  const DialledRun right = model.run(1, 16);
  const auto hold = &test::HeldQueue::hold_until_next;
  const DialledRun raced = model.run(2, 16, {.reuse_ring_entry = true}, hold);
  EXPECT_TRUE(raced.failed || raced.ids != right.ids || raced.drafted != right.drafted ||
              raced.accepted != right.accepted);
  // That the device is late is harmless alone.
  expect_equal(model.run(2, 16, {}, hold), right, "held");
}

// Run by hand and by tools/check_planted_race.sh in a ThreadSanitizer build, where it must be
// reported as a data race.
TEST(Counts, DISABLED_PlantedRaceForThreadSanitizer) {
  const DialledModel model("LlamaForCausalLM");
  (void)model.run(2, 16, {.reuse_ring_entry = true}, &test::HeldQueue::hold_second);
}

}  // namespace
}  // namespace foretoken
