#include "model/weights/dora.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "dialled/safetensors_writer.h"
#include "support/folders.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

const std::string kScaledModule = "model.layers.0.self_attn.q_proj";

TensorToWrite matrix_of(const std::string& name, int64_t rows, int64_t cols,
                        std::vector<float> of) {
  return {name, FileDType::kF32, {rows, cols}, [of](std::byte* to) {
            std::memcpy(to, of.data(), of.size() * sizeof(float));
          }};
}

// A model of one matrix [2, 3] and an adapter of rank 1 for it.
class Magnitudes : public testing::Test {
 protected:
  void SetUp() override {
    model_.write("config.json", "{}");
    write_model(kScaledModule, {3, 0, 0, 1, 1, 1}, 2, 3);
    write_adapter({10, 3}, 2);
  }
  void write_model(const std::string& module, std::vector<float> of, int64_t rows, int64_t cols) {
    const std::vector<TensorToWrite> tensors = {
        matrix_of(module + ".weight", rows, cols, std::move(of))};
    ASSERT_TRUE(write_safetensors(model_.file("model.safetensors"), tensors).ok());
  }
  void write_adapter(std::vector<float> magnitudes, int64_t count) {
    const std::string base = "base_model.model." + kScaledModule;
    adapter_.write("adapter_config.json",
                   R"({"peft_type": "LORA", "r": 1, "lora_alpha": 2, "use_dora": true,
                       "target_modules": ["q_proj"]})");
    const std::vector<TensorToWrite> tensors = {
        matrix_of(base + ".lora_A.weight", 1, 3, {0, 2, 0}),
        matrix_of(base + ".lora_B.weight", 2, 1, {1, 0}),
        matrix_of(base + ".lora_magnitude_vector", 1, count, std::move(magnitudes))};
    ASSERT_TRUE(write_safetensors(adapter_.file("adapter_model.safetensors"), tensors).ok());
  }
  Status read(LoraAdapter* adapter) {
    *adapter = read_peft_adapter(adapter_.path(), DType::kF32, 8).value();
    return read_magnitudes(adapter_.path(), ModelFiles(model_.path()), adapter);
  }
  void expect_error(StatusCode code, const std::string& part) {
    LoraAdapter adapter;
    const Status status = read(&adapter);
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  }

  test::ScratchFolder model_;
  test::ScratchFolder adapter_;
};

// Rows are (3, 4, 0), of which 2 * 1 * 2 is the adapter's, and (1, 1, 1).
TEST_F(Magnitudes, AreDividedByTheRowsOfTheChangedMatrix) {
  LoraAdapter adapter;
  const Status status = read(&adapter);
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_EQ(adapter.linears[0].factors.size(), 2u);
  EXPECT_FLOAT_EQ(adapter.linears[0].factors[0], 2);
  EXPECT_FLOAT_EQ(adapter.linears[0].factors[1], std::sqrt(3.0f));
}

TEST_F(Magnitudes, OfWhatTheModelHasNotAreRefused) {
  write_model(kScaledModule, {1, 2, 3, 4}, 2, 2);
  expect_error(StatusCode::kInvalidArgument, "but the model's is [2, 2]");
  write_model("model.layers.1.self_attn.q_proj", {3, 0, 0, 1, 1, 1}, 2, 3);
  expect_error(StatusCode::kUnsupported, "which is no matrix of the model's files");
}

TEST_F(Magnitudes, ThatAreNoneAreRefused) {
  write_adapter({1, 2, 3}, 3);
  expect_error(StatusCode::kInvalidArgument, "but 2 magnitudes are wanted");
  write_adapter({1, 2}, 2);
  write_model(kScaledModule, {3, 0, 0, 0, 0, 0}, 2, 3);
  expect_error(StatusCode::kInvalidArgument, "of a row that is all zeros");
}

}  // namespace
}  // namespace foretoken
