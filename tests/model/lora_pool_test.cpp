#include "model/lora_pool.h"

#include <algorithm>
#include <cmath>

#include "model/files/forms/convert.h"
#include "model/forward_harness.h"
#include "model/gguf_family_files.h"
#include "model/golden.h"
#include "model/weights/dora.h"
#include "model/weights/saved_bases.h"
#include "support/random_adapter.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

using test::ForwardHarness;
using Rows = std::vector<std::vector<float>>;

// What PEFT made of an adapter and a model (tools/golden/gen_lora.py).
struct LoraGolden {
  std::string folder;
  std::string model;
  std::vector<int32_t> ids;
  int32_t begin = 0;  // of the adapter
  Rows logits;
  Rows base;

  // Ids that the model has not.
  int32_t added_ids() const {
    const auto all = std::ssize(logits[0]), own = std::ssize(base[0]);
    return static_cast<int32_t>(std::max<int64_t>(all - own, 0));
  }
};

Rows read_rows(const SafetensorsFile& file, const std::string& name) {
  const TensorView& tensor = file.tensors().at(name);
  std::vector<float> all(static_cast<size_t>(tensor.num_elements()));
  FT_CHECK(convert_tensor(tensor, DType::kF32, all.data()).ok());
  const auto cols = static_cast<size_t>(tensor.shape[1]);
  Rows rows;
  for (size_t at = 0; at < all.size(); at += cols) {
    rows.emplace_back(all.begin() + static_cast<int64_t>(at),
                      all.begin() + static_cast<int64_t>(at + cols));
  }
  return rows;
}

LoraGolden read_golden(const std::string& name) {
  LoraGolden golden;
  golden.folder = test::golden_folder() + "lora/" + name;
  const auto config = read_json_file(golden.folder + "/adapter_config.json").value();
  golden.model = test::golden_folder() + config.at("base_model_name_or_path").get<std::string>();
  const auto file = SafetensorsFile::open(golden.folder + "/golden.safetensors").value();
  const std::vector<int64_t> ids = read_integers(file->tensors().at("ids")).value();
  for (const int64_t id : ids) {
    golden.ids.push_back(static_cast<int32_t>(id));
  }
  if (const auto& invocation = config.at("alora_invocation_tokens"); !invocation.is_null()) {
    const auto tokens = invocation.get<std::vector<int32_t>>();
    golden.begin = static_cast<int32_t>(std::ranges::find_end(golden.ids, tokens).begin() -
                                        golden.ids.begin());
  }
  golden.logits = read_rows(*file, "logits");
  golden.base = read_rows(*file, "base");
  return golden;
}

// Ids that an adapter's own matrix has no row for come last, and never.
double worst_of_rows(const Rows& got, const Rows& want) {
  double worst = 0;
  for (size_t r = 0; r < want.size(); ++r) {
    for (size_t i = want[r].size(); i < got[r].size(); ++i) EXPECT_EQ(got[r][i], -INFINITY) << i;
    double difference = 0, norm = 0;
    for (size_t i = 0; i < want[r].size(); ++i) {
      difference += std::pow(double(got[r][i]) - want[r][i], 2);
      norm += std::pow(double(want[r][i]), 2);
    }
    worst = std::max(worst, std::sqrt(difference / norm));
  }
  return worst;
}

// Brings the adapter of a golden into a place of the model's pool.
void put(Model& model, ForwardHarness& harness, int32_t place, const LoraGolden& golden) {
  LoraPool& pool = *model.adapters();
  const std::string& folder = golden.folder;
  LoraAdapter adapter = read_peft_adapter(folder, pool.dtype(), pool.max_rank()).value();
  const auto changed = changed_bases(folder, adapter, golden.model).value();
  ASSERT_TRUE(read_wholes(folder, changed, &adapter).ok());
  ASSERT_TRUE(read_token_rows(folder, golden.model, &adapter).ok());
  const Status magnitudes = read_magnitudes(folder, golden.model, &adapter);
  ASSERT_TRUE(magnitudes.ok()) << magnitudes.message();
  const auto image = pool.make_image(unpack_adapter(pack_adapter(adapter)).value()).value();
  pool.load(harness.queue(), place, *image);
  ASSERT_TRUE(harness.queue().drain().ok());
}

std::unique_ptr<Model> adaptable_model(const std::string& folder, const std::string& dtype,
                                       int32_t places, int32_t added_ids = 0) {
  auto model = test::load_test_model(folder, {dtype, "", added_ids}, 96);
  FT_CHECK(model->take_adapter_slots({places, 8, true}).ok());
  return model;
}

class LoraPoolGolden : public testing::TestWithParam<std::string> {
 protected:
  void check(const std::string& dtype, double limit) {
    const LoraGolden golden = read_golden(GetParam());
    const auto model = adaptable_model(golden.model, dtype, 2, golden.added_ids());
    for (const int chunk : {7, 64, 70}) {
      ForwardHarness harness(test::model_device(), *model, 96, 16);
      put(*model, harness, 1, golden);
      harness.use_adapters(AdapterUse::kLayers, true);
      harness.adapt(0, 1, golden.begin);
      const double error = worst_of_rows(harness.run(golden.ids, chunk), golden.logits);
      std::printf("%s %s, chunks of %d: worst row error %.3g\n", GetParam().c_str(), dtype.c_str(),
                  chunk, error);
      EXPECT_LT(error, limit) << "chunks of " << chunk;
      harness.adapt(0, -1);
      EXPECT_LT(worst_of_rows(harness.run(golden.ids, chunk), golden.base), limit) << "without";
    }
  }
};

TEST_P(LoraPoolGolden, Float32LogitsMatchPeft) { check("float32", 1e-5); }
TEST_P(LoraPoolGolden, Bfloat16LogitsAreNearPeft) { check("bfloat16", 2e-2); }

INSTANTIATE_TEST_SUITE_P(All, LoraPoolGolden,
                         testing::Values("all-seven", "queries-and-values", "one-layer", "fused",
                                         "transposed", "grouped", "decoder", "padded",
                                         "padded-values", "scaled", "ends", "scaled-ends",
                                         "tied-ends", "look-up", "whole-ends", "whole-scaled-ends",
                                         "whole-tied", "whole-table", "fewer-rows", "more-rows",
                                         "more-ends", "more-tied", "tokens", "tokens-apart",
                                         "tied-tokens", "activated", "dora", "dora-biased",
                                         "dora-transposed", "dora-scaled", "fewer-tokens"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Rows with two adapters and without one, alone and together, whatever the rest of the step is.
class LoraPoolBits : public testing::TestWithParam<std::string> {};

TEST_P(LoraPoolBits, OfARowDoNotDependOnTheOthers) {
  const bool ends = GetParam().ends_with("ends") || GetParam() == "more-rows";
  const LoraGolden golden = read_golden(GetParam());
  for (const char* dtype : {"float32", "bfloat16"}) {
    const auto model = adaptable_model(golden.model, dtype, 3, golden.added_ids());
    const std::span<const int32_t> ids(golden.ids);
    const LoraGolden other = read_golden("queries-and-values");
    const auto run = [&](const std::vector<int>& places, int rows, AdapterUse use) {
      ForwardHarness harness(test::model_device(), *model, 96, 16);
      put(*model, harness, 0, golden);
      put(*model, harness, 2, other);
      harness.use_adapters(use, use != AdapterUse::kNone && ends);
      std::vector<test::SpanWish> wishes;
      for (size_t slot = 0; slot < places.size(); ++slot) {
        harness.start(static_cast<int32_t>(slot), ids);
        harness.adapt(static_cast<int32_t>(slot), places[slot]);
        wishes.push_back({static_cast<int32_t>(slot), rows});
      }
      Rows all = harness.step(wishes);
      for (test::SpanWish& wish : wishes) wish.num_tokens = 1;
      for (auto& row : harness.step(wishes)) all.push_back(std::move(row));
      return all;
    };
    for (const int rows : {2, 5, 23}) {
      const auto count = static_cast<size_t>(rows);
      const Rows together = run({0, -1, 2, 0}, rows, AdapterUse::kLayers);
      const Rows plain = run({-1}, rows, AdapterUse::kNone);
      const Rows first = run({0}, rows, AdapterUse::kLayers);
      const Rows second = run({2}, rows, AdapterUse::kMixers);
      for (size_t i = 0; i < count; ++i) {
        EXPECT_EQ(together[i], first[i]) << dtype << " row " << i;
        EXPECT_EQ(together[count + i], plain[i]) << dtype << " row " << i << " has no adapter";
        EXPECT_EQ(together[2 * count + i], second[i]) << dtype << " row " << i;
        EXPECT_EQ(together[3 * count + i], first[i]) << dtype << " row " << i;
      }
      EXPECT_EQ(together[4 * count], first[count]);
      EXPECT_EQ(together[4 * count + 1], plain[count]);
      EXPECT_NE(first[count], plain[count]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, LoraPoolBits,
                         testing::Values("all-seven", "ends", "whole-ends", "more-rows", "dora"),
                         [](const auto& test) { return test.param.substr(0, 3); });

// A place that gets another adapter has nothing of the one before.
TEST(LoraPool, APlaceCanBeGivenToAnotherAdapter) {
  const LoraGolden all = read_golden("all-seven"), few = read_golden("queries-and-values"),
                   ends = read_golden("ends"), whole = read_golden("whole-ends");
  const auto model = adaptable_model(all.model, "float32", 1);
  ForwardHarness harness(test::model_device(), *model, 96, 16);
  harness.use_adapters(AdapterUse::kLayers, true);
  harness.adapt(0, 0);
  for (const LoraGolden* golden : {&all, &few, &ends, &whole, &all}) {
    put(*model, harness, 0, *golden);
    EXPECT_LT(worst_of_rows(harness.run(golden->ids, 70), golden->logits), 1e-5);
  }
}

TEST(LoraPool, AdaptersOfOtherModelsAreRefusedByName) {
  const auto model = adaptable_model(test::golden_folder() + "tiny-llama", "float32", 1);
  LoraPool& pool = *model->adapters();
  const auto message = [&](const LoraLinear& linear) {
    const auto image = pool.make_image({DType::kF32, {linear}, {}, {}});
    return image.ok() ? "" : image.status().message();
  };
  LoraLinear linear{"model.layers.1.self_attn.q_proj", 1, 64, 64, 1, {}, {}};
  linear.a.resize(64 * sizeof(float));
  linear.b.resize(64 * sizeof(float));
  EXPECT_EQ(message(linear), "");
  linear.inputs = 32;
  EXPECT_NE(message(linear).find("[64, 32], but the model's is [64, 64]"), std::string::npos);
  for (const char* name :
       {"model.layers.2.self_attn.q_proj", "model.layers.1.self_attn.qkv_proj",
        "vision_tower.layers.1.self_attn.q_proj", "score", "vision_tower.embed_tokens"}) {
    linear.module = name;
    linear.inputs = 64;
    EXPECT_NE(message(linear).find("the adapter changes '" + std::string(name) + "'; this model"),
              std::string::npos)
        << message(linear);
  }
  EXPECT_NE(message(linear).find("mlp.down_proj, mlp.gate_proj"), std::string::npos);
  EXPECT_NE(message(linear).find("in its layers, and of embed_tokens, lm_head"), std::string::npos);
  linear.module = "lm_head";
  EXPECT_NE(message(linear).find("[64, 64], but the model's is [512, 64]"), std::string::npos);
}

// An adapter of a model with vision may change both; texts do not pass the other part.
TEST(LoraPool, PartsThatReadImagesAreLeftOut) {
  const std::string folder = test::golden_folder() + "architectures/qwen2_5-vl";
  const auto model = adaptable_model(folder, "float32", 1);
  LoraPool& pool = *model->adapters();
  const auto hidden = static_cast<int64_t>(model->config().hidden_size);
  LoraLinear text{"model.language_model.layers.0.mlp.down_proj",
                  1,
                  model->config().intermediate_size,
                  hidden,
                  1,
                  {},
                  {}};
  text.a.resize(static_cast<size_t>(text.inputs) * sizeof(float));
  text.b.resize(static_cast<size_t>(text.outputs) * sizeof(float));
  LoraLinear vision{"model.visual.blocks.0.attn.qkv", 1, 2, 3, 1, {}, {}};
  const auto image = pool.make_image({DType::kF32, {text, vision}, {}, {}});
  ASSERT_TRUE(image.ok()) << image.status().message();
  EXPECT_TRUE(image.value()->changes_feed_forward());
  EXPECT_TRUE(pool.make_image({DType::kF32, {vision}, {}, {}}).ok());
  vision.module = "score";
  const auto refused = pool.make_image({DType::kF32, {text, vision}, {}, {}});
  EXPECT_NE(refused.status().message().find("the adapter changes 'score'"), std::string::npos);
}

// Of the first layer's linear attention.
void write_state_adapter(const std::string& folder, const ModelConfig& config) {
  const RecurrentConfig& sizes = config.recurrent;
  const int64_t hidden = config.hidden_size, values = sizes.value_heads * sizes.value_dim;
  const int64_t qkv = 2 * sizes.key_heads * sizes.key_dim + values;
  struct Module {
    const char* name;
    int64_t outputs;
    int64_t inputs;
  };
  std::vector<TensorToWrite> tensors;
  nlohmann::json names = nlohmann::json::array();
  uint64_t seed = 0;
  for (const Module& module : {Module{"in_proj_qkv", qkv, hidden},
                               {"in_proj_z", values, hidden},
                               {"in_proj_a", sizes.value_heads, hidden},
                               {"in_proj_b", sizes.value_heads, hidden},
                               {"out_proj", hidden, values}}) {
    const std::string base =
        std::string("base_model.model.model.layers.0.linear_attn.") + module.name;
    tensors.push_back(test::adapter_parts::random_tensor(base + ".lora_A.weight", 4, module.inputs,
                                                         0.3f, ++seed));
    tensors.push_back(test::adapter_parts::random_tensor(base + ".lora_B.weight", module.outputs, 4,
                                                         0.3f, ++seed));
    names.push_back(module.name);
  }
  ASSERT_TRUE(write_safetensors(folder + "/adapter_model.safetensors", tensors).ok());
  std::ofstream(folder + "/adapter_config.json") << nlohmann::json{
      {"peft_type", "LORA"}, {"r", 4}, {"lora_alpha", 4}, {"target_modules", names}};
}

// Adapters are made of folders, whose heads of values lie in another order than a file's.
TEST(LoraPool, HeadsThatTakeTurnsInAFileHaveTheirOwnRows) {
  const test::GoldenCase golden = test::golden_cases({"qwen3_5"}).front();
  const test::ScratchFolder folder;
  const std::string path = folder.file("model.gguf");
  test::write_gguf(path, "qwen35", golden.folder);
  write_state_adapter(folder.path(), read_model_config(golden.folder, {}).value());
  if (HasFatalFailure()) return;
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 40; ++i) ids.push_back(i * 7 % 100);
  std::vector<Rows> adapted;
  for (const std::string& files : {golden.folder, path}) {
    const auto model = adaptable_model(files, "float32", 2);
    ForwardHarness harness(test::model_device(), *model, 96, 16);
    LoraPool& pool = *model->adapters();
    const auto adapter = read_peft_adapter(folder.path(), pool.dtype(), pool.max_rank());
    ASSERT_TRUE(adapter.ok()) << adapter.status().message();
    const auto image = pool.make_image(adapter.value());
    ASSERT_TRUE(image.ok()) << image.status().message();
    pool.load(harness.queue(), 1, *image.value());
    ASSERT_TRUE(harness.queue().drain().ok());
    harness.use_adapters(AdapterUse::kLayers, true);
    const Rows plain = harness.run(ids, 70);
    harness.adapt(0, 1);
    adapted.push_back(harness.run(ids, 70));
    EXPECT_GT(worst_of_rows(adapted.back(), plain), 0.01);
  }
  EXPECT_LT(worst_of_rows(adapted[1], adapted[0]), 1e-4);
}

}  // namespace
}  // namespace foretoken
