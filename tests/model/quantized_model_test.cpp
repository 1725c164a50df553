#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "base/bfloat16.h"
#include "device/device_traits.h"
#include "dialled/safetensors_writer.h"
#include "gguf/hf_config.h"
#include "kernels/rows/embed.h"
#include "model/files/checkpoint.h"
#include "model/files/forms/convert.h"
#include "model/files/forms/quantized_tensor.h"
#include "model/files/quantized_gguf.h"
#include "model/forward_harness.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

using test::ForwardHarness;
using Rows = std::vector<std::vector<float>>;

constexpr int kVocab = 512;

std::vector<int32_t> quantized_test_ids(int32_t count) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < count; ++i) ids.push_back((i * i * 31 + i) % kVocab);
  return ids;
}

// The same weights as floats, in a folder.
void widen(const std::string& gguf, const test::ScratchFolder& folder) {
  const auto checkpoint = Checkpoint::open(gguf).value();
  std::vector<TensorToWrite> tensors;
  for (const auto& [name, view] : checkpoint.tensors()) {
    tensors.push_back(
        {name, FileDType::kF32, view->shape, [view = view](std::byte* out) {
           std::vector<std::byte> raw;
           ASSERT_TRUE(read_elements(*view, 0, view->num_elements(), DType::kF32, out, raw).ok());
         }});
  }
  ASSERT_TRUE(write_safetensors(folder.file("model.safetensors"), tensors).ok());
  std::ofstream(folder.file("config.json"))
      << gguf_model_config(*GgufFile::open(gguf).value()).value();
}

bool keeps_halves() {
  return test::model_device().keeps_quantized({16, GroupScale::kNone, 1}, 256, DType::kF32);
}

// The tensors of a file of halves in a folder, which has the head as a tensor of its own: the table
// of `table` type.
void untie(const std::string& gguf, FileDType table, const test::ScratchFolder& folder) {
  const auto checkpoint = Checkpoint::open(gguf).value();
  std::vector<TensorToWrite> tensors;
  const auto add = [&](const std::string& name, const TensorView* view, FileDType type) {
    const DType dtype = type == FileDType::kF16 ? DType::kF16 : DType::kF32;
    tensors.push_back({name, type, view->shape, [view, dtype](std::byte* out) {
                         ASSERT_TRUE(convert_tensor(*view, dtype, out).ok());
                       }});
  };
  for (const auto& [name, view] : checkpoint.tensors()) {
    const bool is_table = name == "model.embed_tokens.weight";
    add(name, view, is_table ? table : view->dtype);
    if (is_table) add("lm_head.weight", view, view->dtype);
  }
  ASSERT_TRUE(write_safetensors(folder.file("model.safetensors"), tensors).ok());
  auto config = gguf_model_config(*GgufFile::open(gguf).value()).value();
  config["tie_word_embeddings"] = false;
  std::ofstream(folder.file("config.json")) << config;
}

// Look-ups read the halves of the head, or of a table beside it, with the bits of floats.
TEST(HalvesModel, TheEmbeddingLiesOnceAndAsTheFileHasIt) {
  if (!keeps_halves()) GTEST_SKIP() << "the device multiplies no halves";
  const test::ScratchFolder folder, halves, floats;
  const std::string path = test::QuantizedGguf().write(folder.file("model.gguf"), 2, kVocab, "F16");
  untie(path, FileDType::kF16, halves);
  untie(path, FileDType::kF32, floats);
  const int64_t table = int64_t{kVocab} * test::QuantizedGguf::kHidden;
  int64_t in_file = 0;
  const auto checkpoint = Checkpoint::open(path).value();
  for (const auto& [name, view] : checkpoint.tensors()) in_file += view->num_bytes;
  const auto tied = test::load_test_model(path, {"auto", ""}, 64);
  const auto beside = test::load_test_model(halves.path(), {"auto", ""}, 64);
  const auto wide = test::load_test_model(floats.path(), {"float32", ""}, 64);
  EXPECT_EQ(tied->weight_bytes(), in_file);
  EXPECT_EQ(beside->weight_bytes(), in_file + table * 2);
  EXPECT_EQ(wide->weight_bytes(), in_file + table * 4);
  const RowTable lent = tied->shared_embedding().value();
  EXPECT_EQ(lent.data, test::model_device().rows_of_weight(tied->shared_head().weight).data);
  EXPECT_EQ(tied->weight_bytes(), in_file);
  const auto run = [](Model& model) {
    return ForwardHarness(test::model_device(), model, 64, 4).run(quantized_test_ids(30), 64);
  };
  const Rows want = run(*wide);
  EXPECT_EQ(run(*tied), want);
  EXPECT_EQ(run(*beside), want);
}

// The rows of all ids.
std::vector<float> looked_up(const RowTable& table, int32_t hidden, bool is_bf16) {
  Device& device = test::model_device();
  const auto queue = device.make_queue().value();
  Arena arena(device, MemoryKind::kPinned);
  const size_t count = size_t(kVocab) * static_cast<size_t>(hidden);
  auto* counts = arena.take_array<StepCounts>(1, "test").value();
  auto* ids = arena.take_array<int32_t>(kVocab, "test").value();
  auto* rows = arena.take_array<float>(count, "test").value();
  *counts = {};
  counts->num_rows = kVocab;
  for (int32_t id = 0; id < kVocab; ++id) ids[id] = id;
  embed(*queue,
        {counts, ids, table, rows, kVocab, kVocab, hidden, is_bf16 ? DType::kBF16 : DType::kF32});
  EXPECT_TRUE(queue->drain().ok());
  return {rows, rows + count};
}

class QuantizedModel : public testing::TestWithParam<const char*> {
 protected:
  const char* only() const { return *GetParam() == 'm' ? nullptr : GetParam(); }
  test::ScratchFolder folder_;
  const std::string path_ = folder_.file("model.gguf");
};

// Quantised weights differ from the same ones as floats by the rounding of x alone, where the
// device keeps them; else by nothing.
TEST_P(QuantizedModel, LogitsAreNearThoseOfFloats) {
  test::QuantizedGguf().write(path_, 2, kVocab, only());
  widen(path_, folder_);
  const auto quantized = test::load_test_model(path_, {"float32", ""}, 64);
  const auto wide = test::load_test_model(folder_.path(), {"float32", ""}, 64);
  EXPECT_EQ(quantized->num_weights(), wide->num_weights());
  EXPECT_LE(quantized->weight_bytes(), wide->weight_bytes());
  if (test::model_device().keeps_quantized({8, GroupScale::kHalf, 32}, 256, DType::kF32)) {
    EXPECT_LT(quantized->weight_bytes(), wide->weight_bytes() * 6 / 10);
  }
  ForwardHarness a(test::model_device(), *quantized, 64, 4);
  ForwardHarness b(test::model_device(), *wide, 64, 4);
  const Rows got = a.run(quantized_test_ids(30), 64), want = b.run(quantized_test_ids(30), 64);
  for (size_t row = 0; row < want.size(); ++row) {
    double error = 0, size = 0;
    for (size_t i = 0; i < want[row].size(); ++i) {
      error += std::pow(got[row][i] - want[row][i], 2);
      size += std::pow(want[row][i], 2);
    }
    EXPECT_LT(std::sqrt(error / size), 0.06) << "row " << row;
  }
}

// Look-ups of what lies in the head once, and of a table beside it, find the file's numbers.
TEST_P(QuantizedModel, LooksTheFilesNumbersUp) {
  test::QuantizedGguf().write(path_, 2, kVocab, only());
  const auto checkpoint = Checkpoint::open(path_).value();
  const TensorView* view = checkpoint.find("model.embed_tokens.weight").value();
  const int32_t hidden = test::QuantizedGguf::kHidden;
  const auto count = static_cast<size_t>(view->num_elements());
  for (const char* dtype : {"float32", "bfloat16"}) {
    const auto model = test::load_test_model(path_, {dtype, ""}, 64);
    const bool is_bf16 = std::string_view(dtype) == "bfloat16";
    std::vector<float> want(count);
    ASSERT_TRUE(convert_tensor(*view, DType::kF32, want.data()).ok());
    for (float& value : want) {
      if (is_bf16) value = bf16_to_float(bf16_from_float(value));
    }
    EXPECT_EQ(looked_up(model->shared_embedding().value(), hidden, is_bf16), want) << dtype;
  }
}

// The head is a packed copy of the embedding, which the file has once, or lends it its rows.
TEST_P(QuantizedModel, StagesShareWhatOneRankLoads) {
  test::QuantizedGguf().write(path_, 2, kVocab, only());
  LoadOptions options;
  options.config.dtype = "float32";
  options.max_rows = options.max_logits_rows = 4;
  int64_t total = 0, sum = 0;
  options.progress = [&](int64_t, int64_t all) { total = all; };
  for (const int32_t stage : {0, 1}) {
    options.stages = {stage, 2};
    const auto model = load_model(test::model_device(), path_, options);
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_EQ(model.value()->weight_bytes(), total) << "stage " << stage;
    sum += total;
  }
  const bool lends = device_traits(test::model_device().type()).lends_rows;
  const auto checkpoint = Checkpoint::open(path_).value();
  const TensorView* table = checkpoint.find("model.embed_tokens.weight").value();
  const int64_t row = packed_row_bytes(*quantized_form(*table), test::QuantizedGguf::kHidden);
  const int64_t twice = lends ? kVocab * row : 0;
  options.stages = {};
  const auto whole = load_model(test::model_device(), path_, options);
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  EXPECT_EQ(whole.value()->weight_bytes(), total);
  EXPECT_EQ(whole.value()->weight_bytes(), sum - twice);
}

TEST_P(QuantizedModel, RowsDoNotDependOnTheBatchOrTheChunks) {
  test::QuantizedGguf().write(path_, 2, kVocab, only());
  for (const char* dtype : {"float32", "bfloat16"}) {
    const auto model = test::load_test_model(path_, {dtype, ""}, 64);
    const auto run = [&](int chunk) {
      return ForwardHarness(test::model_device(), *model, 64, 4).run(quantized_test_ids(40), chunk);
    };
    const Rows alone = run(1);
    for (const int chunk : {2, 3, 7, 8, 9, 17, 64}) EXPECT_EQ(run(chunk), alone) << chunk;
  }
}
INSTANTIATE_TEST_SUITE_P(Types, QuantizedModel,
                         testing::Values("mixed", "Q8_0", "Q4_0", "Q4_K", "Q6_K", "Q2_K", "IQ4_XS",
                                         "F16"));

}  // namespace
}  // namespace foretoken
