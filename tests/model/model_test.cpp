#include "model/model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/decoder_weights.h"
#include "model/files/checkpoint.h"
#include "model/files/forms/convert.h"
#include "model/forward_harness.h"
#include "support/folders.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

using test::ForwardHarness;
using Rows = std::vector<std::vector<float>>;

const std::string kSource = foretoken::kSourceFolder;

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

// Taps hold the state of each row at its KV slot, whatever the chunks were: the embedding, the
// stream between layers and what leaves the final norm.
TEST(Model, TapsKeepHiddenStatesAtTheKvSlot) {
  for (const char* dtype : {"float32", "bfloat16"}) {
    const auto model = test::load_test_model(kSource + "/tests/golden/tiny-llama", {dtype, ""}, 64);
    const ModelConfig& config = model->config();
    const auto hidden = static_cast<size_t>(config.hidden_size);
    ForwardHarness harness(test::model_device(), *model, 64, 4);
    Arena arena(test::model_device(), MemoryKind::kPinned);
    const auto slots = static_cast<size_t>(harness.num_kv_slots());
    const size_t bytes = slots * hidden * dtype_size(config.dtype);
    const TapSink three{{0, 1, TapSink::kFinalNorm}, arena.take(3 * bytes, "taps").value()};
    const TapSink last{{TapSink::kFinalNorm}, arena.take(bytes, "taps").value()};
    const auto row = [&](const TapSink& sink, size_t kv_slot, size_t tap) {
      const size_t at = (kv_slot * sink.layers.size() + tap) * hidden;
      const TensorView view{
          "",
          "",
          config.dtype == DType::kF32 ? FileDType::kF32 : FileDType::kBF16,
          "",
          {config.hidden_size},
          static_cast<const std::byte*>(sink.pages) + at * dtype_size(config.dtype),
          static_cast<int64_t>(hidden * dtype_size(config.dtype))};
      std::vector<float> values(hidden);
      EXPECT_TRUE(convert_tensor(view, DType::kF32, values.data()).ok());
      return values;
    };
    model->add_tap(three);
    model->add_tap(last);
    const std::vector<int32_t> ids = some_ids(21, 5);
    harness.run(ids, 64);
    Rows rows;
    for (int32_t i = 0; i < 21; ++i) {
      const auto at = static_cast<size_t>(harness.kv_slot(0, i));
      for (size_t tap = 0; tap < 3; ++tap) rows.push_back(row(three, at, tap));
      EXPECT_EQ(row(last, at, 0), rows.back());
    }
    EXPECT_NE(rows[1], rows[0]);
    const auto checkpoint = Checkpoint::open(kSource + "/tests/golden/tiny-llama").value();
    TensorView embedding = *checkpoint.find("model.embed_tokens.weight").value();
    std::vector<float> table(static_cast<size_t>(embedding.num_elements()));
    ASSERT_TRUE(convert_tensor(embedding, DType::kF32, table.data()).ok());
    for (size_t i = 0; i < 21; ++i) {
      for (size_t c = 0; c < hidden; ++c) {
        const float value = table[static_cast<size_t>(ids[i]) * hidden + c];
        ASSERT_NEAR(rows[3 * i][c], value, std::abs(value) * 4e-3f);
      }
    }
    // The last row of the last step is still in the model.
    harness.run(ids, 4);
    for (int32_t i = 0; i < 21; ++i) {
      const auto at = static_cast<size_t>(harness.kv_slot(0, i));
      for (size_t tap = 0; tap < 3; ++tap) {
        EXPECT_EQ(row(three, at, tap), rows[3 * static_cast<size_t>(i) + tap]) << i << " " << tap;
      }
    }
    // Slots of other blocks were left alone.
    EXPECT_EQ(row(three, 0, 0), std::vector<float>(hidden));
  }
}

// The rows that meet the output matrix are those of the last tap.
TEST(Model, HeadInputIsTheNormedRow) {
  const auto model =
      test::load_test_model(kSource + "/tests/golden/tiny-llama", {"float32", ""}, 8);
  const auto hidden = static_cast<size_t>(model->config().hidden_size);
  ForwardHarness harness(test::model_device(), *model, 8, 4);
  Arena arena(test::model_device(), MemoryKind::kPinned);
  auto* pages =
      arena.take_array<float>(static_cast<size_t>(harness.num_kv_slots()) * hidden, "taps").value();
  model->add_tap({{TapSink::kFinalNorm}, pages});
  harness.run(some_ids(6, 2), 8);
  auto* copy = arena.take_array<float>(2 * hidden, "rows").value();
  const void* rows = model->head_input(harness.queue(), harness.tensors(), 3, 2);
  harness.queue().copy(copy, rows, 2 * hidden * sizeof(float));
  ASSERT_TRUE(harness.queue().drain().ok());
  for (int32_t i = 0; i < 2; ++i) {
    const float* tapped = pages + static_cast<size_t>(harness.kv_slot(0, 3 + i)) * hidden;
    EXPECT_EQ(std::vector<float>(copy + static_cast<size_t>(i) * hidden,
                                 copy + static_cast<size_t>(i + 1) * hidden),
              std::vector<float>(tapped, tapped + hidden));
  }
}

// A window in the full group sees what it sees in a group of its own.
TEST(Model, OneKvGroupGivesTheSameLogits) {
  const std::string folder = kSource + "/tests/golden/architectures/gemma2";
  LoadOptions options;
  options.config.dtype = "float32";
  options.max_rows = options.max_logits_rows = 16;
  const auto two = load_model(test::model_device(), folder, options).value();
  options.one_kv_group = true;
  const auto one = load_model(test::model_device(), folder, options).value();
  ASSERT_EQ(two->kv_groups().size(), 2u);
  ASSERT_EQ(one->kv_groups().size(), 1u);
  EXPECT_EQ(one->kv_groups()[0].num_layers, one->config().num_layers);
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 60; ++i) ids.push_back((i * 37 + 11) % one->config().vocab_size);
  ForwardHarness a(test::model_device(), *two, 16, 4), b(test::model_device(), *one, 16, 4);
  EXPECT_EQ(a.run(ids, 16), b.run(ids, 16));
}

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

TEST(Model, QuantisedDummyWeights) {
  if (test::model_device().type() != DeviceType::kCpu) GTEST_SKIP() << "they are the CPU's";
  const test::ScratchFolder folder;
  nlohmann::json config = small_config();
  config["hidden_size"] = 256;
  config["intermediate_size"] = 512;
  folder.write("config.json", config.dump());
  LoadOptions options;
  options.load_format = LoadFormat::kDummy;
  options.max_rows = options.max_logits_rows = 8;
  const std::vector<int32_t> ids = {5, 17, 80, 3, 42};
  int64_t most = load_model(test::model_device(), folder.path(), options).value()->weight_bytes();
  for (const char* recipe : {"q8_0", "q6_k", "q4_k_m", "q4_0"}) {
    options.dummy_recipe = find_gguf_recipe(recipe);
    Rows first;
    for (int round = 0; round < 2; ++round) {
      auto model = load_model(test::model_device(), folder.path(), options);
      ASSERT_TRUE(model.ok()) << recipe << ": " << model.status().message();
      EXPECT_LT(model.value()->weight_bytes(), most + (round == 1 ? 1 : 0)) << recipe;
      most = model.value()->weight_bytes();
      ForwardHarness harness(test::model_device(), *model.value(), 8, 2);
      const Rows rows = harness.run(ids, 8);
      if (round == 0) first = rows;
      EXPECT_EQ(rows, first) << recipe;
    }
    double square = 0;
    for (const float logit : first[4]) square += double(logit) * logit;
    EXPECT_GT(std::sqrt(square / 96), 0.3) << recipe;
    EXPECT_LT(std::sqrt(square / 96), 10) << recipe;
  }
}

// What config.json says of them holds for random ones too, where the device keeps such rows.
TEST(Model, DummyWeightsHaveTheTypeOfTheirConfig) {
  const test::ScratchFolder folder;
  nlohmann::json config = small_config();
  config["hidden_size"] = 256;
  config["intermediate_size"] = 512;
  LoadOptions options;
  options.config.dtype = "bfloat16";
  options.load_format = LoadFormat::kDummy;
  options.max_rows = options.max_logits_rows = 8;
  const auto bytes_with = [&](const nlohmann::json& quantization) {
    if (!quantization.is_null()) config["quantization_config"] = quantization;
    folder.write("config.json", config.dump());
    const auto model = load_model(test::model_device(), folder.path(), options);
    EXPECT_TRUE(model.ok()) << model.status().message();
    return model.ok() ? model.value()->weight_bytes() : 0;
  };
  const int64_t plain = bytes_with({});
  const bool keeps = test::model_device().keeps_quantized(
      {8, GroupScale::kFloat, 128, CodeTable::kE4m3}, 256, DType::kBF16);
  for (const char* quantization : {R"({"quant_method": "fp8"})",
                                   R"({"quant_method": "fp8", "weight_block_size": [128, 128]})"}) {
    const int64_t bytes = bytes_with(nlohmann::json::parse(quantization));
    EXPECT_LE(bytes, keeps ? plain * 8 / 10 : plain) << quantization;
    EXPECT_GT(bytes, plain / 3) << quantization;
  }
  EXPECT_EQ(bytes_with({{"quant_method", "awq"}, {"bits", 4}}), plain);
}

TEST(Model, QuantisedDummyWeightsNeedWholeBlocks) {
  const test::ScratchFolder folder;
  folder.write("config.json", small_config().dump());
  LoadOptions options;
  options.load_format = LoadFormat::kDummy;
  options.max_rows = options.max_logits_rows = 8;
  options.dummy_recipe = find_gguf_recipe("q4_k");
  const auto model = load_model(test::model_device(), folder.path(), options);
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.status().code(), StatusCode::kUnsupported);
  // A GPU keeps fewer kinds of rows than a CPU, and names another matrix first.
  const std::string message = model.status().message();
  EXPECT_TRUE(message.starts_with("--load-format dummy-q4_k: ")) << message;
  EXPECT_NE(message.find("rows of "), std::string::npos) << message;
}

}  // namespace
}  // namespace foretoken
