#include <gtest/gtest.h>

#include <cmath>

#include "base/files/text_file.h"
#include "model/files/mistral_layout.h"
#include "model/forward_harness.h"
#include "model/golden.h"

namespace foretoken {
namespace {

// To the bit: params.json says what config.json says.
TEST(MakersLayout, MistralsGiveTheLogitsOfThoseOfTransformers) {
  for (const test::MistralGolden& golden : test::kMistralGoldens) {
    const test::ScratchFolder folder;
    test::write_own_layout(golden, folder);
    std::vector<int32_t> ids;
    for (int32_t i = 0; i < 90; ++i) ids.push_back((i * 37 + 11) % 128);
    const auto run = [&](const std::string& path) {
      const auto model = test::load_test_model(path, {"float32", ""}, 96);
      test::ForwardHarness harness(test::model_device(), *model, 96, 16);
      return harness.run(ids, 32);
    };
    EXPECT_EQ(run(folder.path()), run(test::mistral_model(golden))) << golden.model;
  }
}

TEST(MakersLayout, MetasGivesTheLogitsOfTransformers) {
  const std::string folder = test::golden_folder() + "meta/";
  const auto file = SafetensorsFile::open(folder + "model/golden.safetensors").value();
  const auto wide = read_integers(file->tensors().at("ids")).value();
  const std::vector<int32_t> ids(wide.begin(), wide.end());
  const TensorView& logits = file->tensors().at("logits");
  std::vector<float> want(static_cast<size_t>(logits.num_elements()));
  ASSERT_TRUE(convert_tensor(logits, DType::kF32, want.data()).ok());
  for (const char* name : {"whole", "columns", "vocabulary"}) {
    const auto model = test::load_test_model(folder + name, {"float32", ""}, 96, 512);
    test::ForwardHarness harness(test::model_device(), *model, 96, 16);
    const auto rows = harness.run(ids, 32);
    double difference = 0, norm = 0;
    for (size_t r = 0; r < rows.size(); ++r) {
      for (size_t i = 0; i < rows[r].size(); ++i) {
        const double wanted = want.at(r * rows[r].size() + i);
        difference += std::pow(rows[r][i] - wanted, 2);
        norm += wanted * wanted;
      }
    }
    EXPECT_LT(std::sqrt(difference / norm), 1e-5) << name;
  }
}

// kv_b_proj of a layer as MLX's tools divide it: the keys' part of each head turned, then that of
// the values.
void add_divided(const std::string& base, const TensorView& joined, const ModelConfig& config,
                 std::vector<TensorToWrite>* out) {
  const int64_t heads = config.num_heads, nope = config.latent.nope_dim,
                value = config.latent.value_dim, rank = config.latent.kv_rank;
  const auto width = static_cast<size_t>(joined.element_bytes());
  const std::string all = test::bytes_of(joined);
  std::string keys, values;
  for (int64_t head = 0; head < heads; ++head) {
    const auto at = [&](int64_t row, int64_t column) {
      return static_cast<size_t>((head * (nope + value) + row) * rank + column) * width;
    };
    for (int64_t c = 0; c < rank; ++c) {
      for (int64_t r = 0; r < nope; ++r) keys += all.substr(at(r, c), width);
    }
    values += all.substr(at(nope, 0), static_cast<size_t>(value * rank) * width);
  }
  out->push_back(
      test::tensor_to_write(base + "embed_q.weight", joined.dtype, {heads, rank, nope}, keys));
  out->push_back(test::tensor_to_write(base + "unembed_out.weight", joined.dtype,
                                       {heads, value, rank}, values));
}

TEST(MakersLayout, LatentAttentionThatMlxDividedGivesTheSameLogits) {
  const std::string usual = test::golden_folder() + "architectures/deepseek_v2-lite";
  const auto file = SafetensorsFile::open(usual + "/model.safetensors").value();
  const std::string text = read_text_file(usual + "/config.json").value();
  const ModelConfig config = read_model_config(usual, {"float32", ""}).value();
  std::vector<TensorToWrite> tensors;
  for (const auto& [name, tensor] : file->tensors()) {
    const size_t at = name.find("kv_b_proj.weight");
    if (at != std::string::npos) {
      add_divided(name.substr(0, at), tensor, config, &tensors);
    } else {
      tensors.push_back(
          test::tensor_to_write(name, tensor.dtype, tensor.shape, test::bytes_of(tensor)));
    }
  }
  const test::ScratchFolder folder;
  folder.write("config.json", text);
  ASSERT_TRUE(write_safetensors(folder.file("model.safetensors"), tensors).ok());
  const auto run = [](const std::string& path) {
    const auto model = test::load_test_model(path, {"float32", ""}, 96);
    test::ForwardHarness harness(test::model_device(), *model, 96, 16);
    return harness.run(std::vector<int32_t>{5, 77, 3, 41, 19, 120, 8}, 32);
  };
  EXPECT_EQ(run(folder.path()), run(usual));
}

}  // namespace
}  // namespace foretoken
