#include "dialled/dialled_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "model/files/containers/json_file.h"
#include "model/forward_harness.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

using test::model_device;
using test::ScratchFolder;

struct Dialled {
  std::string architecture;
  DType dtype;
};

std::vector<Dialled> all_dialled() {
  std::vector<Dialled> all;
  for (const std::string& name : dialled_architectures()) {
    all.push_back({name, DType::kF32});
    all.push_back({name, DType::kBF16});
  }
  return all;
}

class DialledTarget : public testing::TestWithParam<Dialled> {
 protected:
  DialledTarget() {
    shape_.architecture = GetParam().architecture;
    shape_.dtype = GetParam().dtype;
  }

  DialledShape shape_;
  ScratchFolder folder_;
};

// Distance between the largest and the second largest logit.
float margin(std::vector<float> row) {
  std::partial_sort(row.begin(), row.begin() + 2, row.end(), std::greater<>());
  return row[0] - row[1];
}

TEST_P(DialledTarget, GreedyFollowsThePermutationFromEveryId) {
  const Status written = write_dialled_checkpoint(folder_.path(), shape_);
  ASSERT_TRUE(written.ok()) << written.message();
  const auto model = test::load_test_model(folder_.path(), {}, 128);
  EXPECT_EQ(model->config().architecture, shape_.architecture);
  const DialledCycle cycle(shape_.vocab_size, shape_.seed);
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < cycle.length(); ++i) ids.push_back(cycle.at(i));
  test::ForwardHarness harness(model_device(), *model, 128, 40);
  const auto rows = harness.run(ids, 128);
  float least = 1e9f;
  for (size_t i = 0; i < ids.size(); ++i) {
    ASSERT_EQ(test::argmax(rows[i]), cycle.next(ids[i])) << "id " << ids[i];
    least = std::min(least, margin(rows[i]));
  }
  EXPECT_GT(least, 1.5);
}

TEST_P(DialledTarget, LogitsDependOnTheContext) {
  ASSERT_TRUE(write_dialled_checkpoint(folder_.path(), shape_).ok());
  const auto model = test::load_test_model(folder_.path(), {}, 16);
  test::ForwardHarness harness(model_device(), *model, 16, 2);
  const std::vector<int32_t> a = {5, 6, 7}, b = {9, 6, 7};
  EXPECT_NE(harness.run(a, 16)[2], harness.run(b, 16)[2]);
}
INSTANTIATE_TEST_SUITE_P(All, DialledTarget, testing::ValuesIn(all_dialled()),
                         [](const auto& test) {
                           return test.param.architecture + "_" + dtype_name(test.param.dtype);
                         });

TEST(Dialled, AnotherShape) {
  const ScratchFolder folder;
  const DialledShape shape{.num_layers = 1,
                           .hidden_size = 96,
                           .num_heads = 3,
                           .num_kv_heads = 1,
                           .head_dim = 32,
                           .vocab_size = 3000,
                           .intermediate_size = 64,
                           .seed = 9};
  ASSERT_TRUE(write_dialled_checkpoint(folder.path(), shape).ok());
  const auto model = test::load_test_model(folder.path(), {}, 512);
  const DialledCycle cycle(shape.vocab_size, shape.seed);
  test::ForwardHarness harness(model_device(), *model, 512, 32);
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 500; ++i) ids.push_back(cycle.at(i));
  const auto rows = harness.run(ids, 512);
  for (size_t i = 0; i < ids.size(); ++i) ASSERT_EQ(test::argmax(rows[i]), cycle.next(ids[i]));
}

TEST(Dialled, CycleVisitsEveryIdOnce) {
  const DialledCycle cycle(100, 3);
  EXPECT_EQ(cycle.length(), 98);
  std::set<int32_t> seen;
  int32_t id = cycle.at(0);
  for (int32_t i = 0; i < cycle.length(); ++i, id = cycle.next(id)) seen.insert(id);
  EXPECT_EQ(seen.size(), 98u);
  EXPECT_EQ(*seen.begin(), 2);
  EXPECT_EQ(id, cycle.at(98));
}

TEST(Dialled, AgreementIsTheShareOfEqualSuccessors) {
  DialledShape shape;
  const DialledCycle cycle(shape.vocab_size, shape.seed);
  for (const double agreement : {1.0, 0.7, 0.3}) {
    shape.agreement = agreement;
    const auto successors = dialled_successors(shape);
    int32_t equal = 0;
    std::set<int32_t> targets;
    for (int32_t id = 2; id < shape.vocab_size; ++id) {
      equal += successors[static_cast<size_t>(id)] == cycle.next(id);
      targets.insert(successors[static_cast<size_t>(id)]);
    }
    EXPECT_NEAR(double(equal) / cycle.length(), agreement, 0.01);
    EXPECT_EQ(targets.size(), static_cast<size_t>(cycle.length()));
  }
}

TEST(Dialled, TokenizerHasOneWordForEachId) {
  const ScratchFolder folder;
  ASSERT_TRUE(write_dialled_checkpoint(folder.path(), {}).ok());
  const auto json = read_json_file(folder.file("tokenizer.json")).value();
  const auto& vocab = json["model"]["vocab"];
  EXPECT_EQ(vocab.size(), 512u);
  EXPECT_EQ(vocab["\u0120t17"], 17);
  EXPECT_EQ(dialled_text({17, 5}), " t17 t5");
}

TEST(Dialled, ImpossibleShapesAreRefused) {
  const ScratchFolder folder;
  DialledShape shape;
  shape.hidden_size = 16;
  const Status narrow = write_dialled_checkpoint(folder.path(), shape);
  EXPECT_EQ(narrow.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(narrow.message().find("hidden_size of at least"), std::string::npos);
  shape = {};
  shape.num_heads = 3;
  EXPECT_FALSE(write_dialled_checkpoint(folder.path(), shape).ok());
  shape = {};
  shape.architecture = "JetMoeForCausalLM";
  const Status unknown = write_dialled_checkpoint(folder.path(), shape);
  EXPECT_EQ(unknown.code(), StatusCode::kUnsupported);
  EXPECT_NE(unknown.message().find("foretoken inspect --families lists what loads"),
            std::string::npos);
}

class DialledPromptRate : public testing::TestWithParam<std::tuple<double, int, int>> {};

TEST_P(DialledPromptRate, AcceptanceIsAboutTheDialledRate) {
  const auto [rate, num_draft_tokens, num_output] = GetParam();
  const DialledCycle cycle(2048, 1);
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const NgramDial dial{.acceptance = rate,
                         .num_output = num_output,
                         .num_draft_tokens = num_draft_tokens,
                         .seed = seed};
    const auto prompt = make_dialled_prompt(cycle, dial);
    ASSERT_TRUE(prompt.ok()) << prompt.status().message();
    EXPECT_NEAR(prompt.value().acceptance(), rate, 0.1) << "seed " << seed;
    EXPECT_GT(prompt.value().num_drafted, num_output / 3);
    int32_t id = prompt.value().ids.back();
    ASSERT_EQ(prompt.value().expected_output.size(), static_cast<size_t>(num_output));
    for (const int32_t next : prompt.value().expected_output) {
      EXPECT_EQ(next, cycle.next(id));
      id = next;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Rates, DialledPromptRate,
                         testing::Combine(testing::Values(0.3, 0.5, 0.7, 0.9, 0.95),
                                          testing::Values(1, 4, 8), testing::Values(64, 256)));

TEST(Dialled, ImpossiblePromptsAreRefused) {
  const DialledCycle cycle(64, 1);
  EXPECT_FALSE(make_dialled_prompt(cycle, {.acceptance = 0.1}).ok());
  EXPECT_FALSE(make_dialled_prompt(cycle, {.num_output = 100}).ok());
}

}  // namespace
}  // namespace foretoken
