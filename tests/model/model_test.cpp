#include "model/model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/decoder_weights.h"
#include "model/forward_harness.h"
#include "model/scratch_folder.h"

namespace foretoken {
namespace {

using test::ForwardHarness;
using Rows = std::vector<std::vector<float>>;

const std::string kSource = FORETOKEN_SOURCE_DIR;

std::vector<int32_t> some_ids(int32_t count, int32_t seed) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < count; ++i) ids.push_back((i * i * 31 + seed * 97 + i) % 512);
  return ids;
}

class ModelBatch : public testing::TestWithParam<const char*> {};

// The bits of a row's logits do not depend on what shares its step.
TEST_P(ModelBatch, RowsDoNotDependOnTheBatchOrTheChunks) {
  const auto model =
      test::load_test_model(kSource + "/tests/golden/tiny-llama", {GetParam(), ""}, 64);
  const std::vector<int32_t> a = some_ids(17, 3), b = some_ids(40, 11);
  ForwardHarness alone(test::model_device(), *model, 64, 4);
  const Rows rows_a = alone.run(a, 64), rows_b = alone.run(b, 64);
  ForwardHarness chunked(test::model_device(), *model, 64, 4);
  EXPECT_EQ(chunked.run(b, 3), rows_b);

  ForwardHarness together(test::model_device(), *model, 64, 4);
  together.start(1, a);
  together.start(3, b);
  const int32_t first_b = static_cast<int32_t>(b.size()) - 5;
  const test::SpanWish wishes[] = {{3, first_b}, {1, static_cast<int32_t>(a.size())}};
  const Rows rows = together.step(wishes);
  ASSERT_EQ(rows.size(), a.size() + static_cast<size_t>(first_b));
  for (size_t i = 0; i < rows.size(); ++i) {
    const size_t in_b = static_cast<size_t>(first_b);
    EXPECT_EQ(rows[i], i < in_b ? rows_b[i] : rows_a[i - in_b]) << "row " << i;
  }
  const test::SpanWish rest[] = {{3, 5}};
  const Rows tail = together.step(rest);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(tail[i], rows_b[rows_b.size() - 5 + i]);
}
INSTANTIATE_TEST_SUITE_P(Types, ModelBatch, testing::Values("float32", "bfloat16"));

nlohmann::json small_config() {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"vocab_size", 96},
          {"hidden_size", 32},
          {"intermediate_size", 48},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"tie_word_embeddings", true},
          {"attention_bias", true},
          {"mlp_bias", true}};
}

TEST(Model, DummyWeightsGiveVariedLogitsAndTheSameOnEveryLoad) {
  const test::ScratchFolder folder;
  folder.write("config.json", small_config().dump());
  LoadOptions options;
  options.load_format = LoadFormat::kDummy;
  options.max_rows = options.max_logits_rows = 8;
  const std::vector<int32_t> ids = {5, 17, 80, 3, 42};
  Rows first;
  for (int round = 0; round < 2; ++round) {
    auto model = load_model(test::model_device(), folder.path(), options);
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_EQ(model.value()->weight_bytes(),
              decoder_weight_bytes(model.value()->config(), kLlamaArchitecture.decoder));
    EXPECT_GT(model.value()->scratch_bytes(), 0);
    ForwardHarness harness(test::model_device(), *model.value(), 8, 2);
    const Rows rows = harness.run(ids, 8);
    if (round == 0) first = rows;
    EXPECT_EQ(rows, first);
  }
  double square = 0;
  for (const float logit : first[4]) square += double(logit) * logit;
  const double deviation = std::sqrt(square / static_cast<double>(first[4].size()));
  EXPECT_GT(deviation, 0.3);
  EXPECT_LT(deviation, 10);
  EXPECT_NE(first[3], first[4]);
}

}  // namespace
}  // namespace foretoken
