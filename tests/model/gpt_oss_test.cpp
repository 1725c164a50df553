#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "dialled/safetensors_writer.h"
#include "model/files/checkpoint.h"
#include "model/files/forms/convert.h"
#include "model/files/forms/quantized_tensor.h"
#include "model/forward_harness.h"
#include "model/golden.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

using test::ForwardHarness;
using test::GoldenCase;
using test::GoldenPrompt;
using Rows = std::vector<std::vector<float>>;

// Experts in MXFP4, as gpt-oss is published.
const std::string kMxfp4Folder = test::golden_folder() + "architectures/gpt_oss-mxfp4";
const std::string kGptOssGguf = test::golden_folder() + "gguf/gpt-oss.gguf";

GoldenCase mxfp4_case() { return test::golden_cases({"gpt_oss-mxfp4"}).at(0); }

// GGUF files do not say the limit of gates, which is always that of the published models.
constexpr const char* kGptOssOverrides = R"({"swiglu_limit": 1.5})";

Rows logits_of(const std::string& path, const std::string& dtype, const std::vector<int32_t>& ids,
               int chunk) {
  const GoldenCase golden = mxfp4_case();
  const auto model =
      test::load_test_model(path, {dtype, kGptOssOverrides}, chunk, golden.max_model_len);
  return ForwardHarness(test::model_device(), *model, chunk, 32).run(ids, chunk);
}

double error_of(const std::vector<float>& got, const std::vector<float>& want) {
  double error = 0, size = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    error += std::pow(double(got[i]) - want[i], 2);
    size += std::pow(double(want[i]), 2);
  }
  return std::sqrt(error / size);
}

double worst_golden_error(const Rows& rows, const GoldenPrompt& prompt) {
  double worst = 0;
  for (size_t i = 0; i < prompt.positions.size(); ++i) {
    worst = std::max(worst,
                     error_of(rows.at(static_cast<size_t>(prompt.positions[i])), prompt.logits[i]));
  }
  return worst;
}

// The folder with the experts' matrices as floats, [experts, rows, columns].
void widen_experts(const test::ScratchFolder& to) {
  const auto checkpoint = Checkpoint::open(kMxfp4Folder).value();
  std::vector<TensorToWrite> tensors;
  for (const auto& [name, view] : checkpoint.tensors()) {
    tensors.push_back(
        {name, FileDType::kF32, view->shape, [view = view](std::byte* out) {
           std::vector<std::byte> raw;
           ASSERT_TRUE(read_elements(*view, 0, view->num_elements(), DType::kF32, out, raw).ok());
         }});
  }
  ASSERT_TRUE(write_safetensors(to.file("model.safetensors"), tensors).ok());
  auto config = read_json_file(kMxfp4Folder + "/config.json").value();
  config.erase("quantization_config");
  to.write("config.json", config.dump());
}

// The numbers are those that transformers makes of blocks and scales, and lie where it has them.
TEST(GptOss, WidenedMxfp4MatchesTheReference) {
  const test::ScratchFolder folder;
  widen_experts(folder);
  for (const GoldenPrompt& prompt : test::golden_prompts(mxfp4_case())) {
    EXPECT_LT(worst_golden_error(logits_of(folder.path(), "float32", prompt.ids, 64), prompt),
              1e-5);
    EXPECT_LT(worst_golden_error(logits_of(folder.path(), "bfloat16", prompt.ids, 64), prompt),
              1e-2);
    std::vector<int32_t> ids = prompt.ids;
    ids.insert(ids.end(), prompt.greedy.begin(), prompt.greedy.end() - 1);
    const Rows rows = logits_of(folder.path(), "float32", ids, 37);
    for (size_t i = 0; i < prompt.greedy.size(); ++i) {
      ASSERT_EQ(test::argmax(rows[prompt.ids.size() - 1 + i]), prompt.greedy[i]) << "token " << i;
    }
  }
}

// x is rounded to eight bits where matrices stay at four.
TEST(GptOss, Mxfp4StaysNearTheReference) {
  const test::ScratchFolder folder;
  widen_experts(folder);
  const auto model = test::load_test_model(kMxfp4Folder, {"bfloat16", ""}, 8);
  const auto wide = test::load_test_model(folder.path(), {"bfloat16", ""}, 8);
  EXPECT_EQ(model->num_weights(), wide->num_weights());
  if (test::model_device().keeps_quantized({4, GroupScale::kHalf, 32, CodeTable::kE2m1, true}, 64,
                                           DType::kF32)) {
    EXPECT_LT(model->weight_bytes(), wide->weight_bytes() * 7 / 10);
  }
  for (const GoldenPrompt& prompt : test::golden_prompts(mxfp4_case())) {
    for (const char* dtype : {"float32", "bfloat16"}) {
      EXPECT_LT(worst_golden_error(logits_of(kMxfp4Folder, dtype, prompt.ids, 64), prompt), 3e-2);
    }
  }
}

// A GGUF file has the same codes and powers of two, bytes of a block in another order.
TEST(GptOss, GgufHasTheBitsOfTheFolder) {
  for (const GoldenPrompt& prompt : test::golden_prompts(mxfp4_case())) {
    EXPECT_TRUE(logits_of(kGptOssGguf, "float32", prompt.ids, 64) ==
                logits_of(kMxfp4Folder, "float32", prompt.ids, 64));
  }
}

TEST(GptOss, RowsDoNotDependOnTheBatchOrTheChunks) {
  const std::vector<int32_t> ids = test::golden_prompts(mxfp4_case()).at(1).ids;
  for (const char* dtype : {"float32", "bfloat16"}) {
    const Rows alone = logits_of(kMxfp4Folder, dtype, ids, 1);
    for (const int chunk : {3, 8, 64})
      EXPECT_TRUE(logits_of(kMxfp4Folder, dtype, ids, chunk) == alone) << chunk;
  }
}

// A folder like the golden one whose tensor `name` is left out or has another shape.
class BrokenFolder : public testing::Test {
 protected:
  std::string message_without(const std::string& name) { return message(name, std::nullopt); }
  std::string message_with(const std::string& name, std::vector<int64_t> shape) {
    return message(name, std::move(shape));
  }

 private:
  std::string message(const std::string& changed, std::optional<std::vector<int64_t>> shape) {
    const test::ScratchFolder folder;
    fs::copy_file(kMxfp4Folder + "/config.json", folder.file("config.json"));
    rewrite(changed, shape, folder.file("model.safetensors"));
    LoadOptions options;
    options.max_rows = options.max_logits_rows = 4;
    const auto model = load_model(test::model_device(), folder.path(), options);
    EXPECT_FALSE(model.ok());
    return model.ok() ? "" : model.status().message();
  }

  // As a safetensors file is: a length, JSON and data.
  static void rewrite(const std::string& changed, const std::optional<std::vector<int64_t>>& shape,
                      const std::string& path) {
    const auto file = SafetensorsFile::open(kMxfp4Folder + "/model.safetensors").value();
    nlohmann::json header;
    std::string data;
    for (const auto& [name, tensor] : file->tensors()) {
      if (name == changed && !shape) continue;
      const std::vector<int64_t>& size = name == changed ? *shape : tensor.shape;
      const int64_t element = tensor.num_bytes / tensor.num_elements();
      int64_t bytes = element;
      for (const int64_t n : size) bytes *= n;
      std::string part(reinterpret_cast<const char*>(tensor.data),
                       static_cast<size_t>(std::min(bytes, tensor.num_bytes)));
      part.resize(static_cast<size_t>(bytes));
      header[name] = {{"dtype", tensor.dtype_name},
                      {"shape", size},
                      {"data_offsets", {data.size(), data.size() + part.size()}}};
      data += part;
    }
    const std::string text = header.dump();
    const uint64_t length = text.size();
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<const char*>(&length), sizeof length);
    out << text << data;
  }
};

TEST_F(BrokenFolder, EachFaultIsNamed) {
  const std::string layer = "model.layers.1.";
  const auto expect = [](const std::string& message, const std::string& part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  const std::string up = layer + "mlp.experts.gate_up_proj";
  expect(message_without(up + "_scales"), "'" + up + "_blocks' lacks its scales");
  expect(message_without(up + "_blocks"), "'" + up);
  expect(message_with(up + "_scales", {4, 64, 3}), "no scales of '" + up + "_blocks'");
  expect(message_with(up + "_blocks", {4, 64, 2, 8}),
         "'" + up + "_blocks' has shape [4, 64, 2, 8]");
  expect(message_with(up + "_blocks", {4, 60, 2, 16}), up);
  expect(message_with(layer + "self_attn.sinks", {3}), "self_attn.sinks' has shape [3]");
  expect(message_without(layer + "self_attn.sinks"), "self_attn.sinks' is missing");
  expect(message_with(layer + "mlp.experts.down_proj_bias", {4, 32}), "down_proj_bias' has shape");
  expect(message_without(layer + "mlp.router.bias"), "mlp.router.bias' is missing");
}

}  // namespace
}  // namespace foretoken
