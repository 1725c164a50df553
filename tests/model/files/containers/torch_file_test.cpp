#include "model/files/containers/torch_file.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "base/files/text_file.h"
#include "model/files/forms/convert.h"
#include "support/folders.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

using test::ScratchFolder;

std::string golden_torch(const std::string& name) {
  return std::string(foretoken::kSourceFolder) + "/tests/golden/torch/" + name;
}

std::vector<float> values_of(const TensorView& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.num_elements()));
  std::vector<std::byte> raw;
  const Status status =
      read_elements(tensor, 0, tensor.num_elements(), DType::kF32, values.data(), raw);
  EXPECT_TRUE(status.ok()) << status.message();
  return values;
}

std::vector<float> count_up(float first, int count, float step = 1) {
  std::vector<float> values;
  for (int i = 0; i < count; ++i) values.push_back(first + step * static_cast<float>(i));
  return values;
}

// What tools/golden/gen_torch_files.py put into its dictionaries.
void expect_all(const TorchFile& file) {
  const auto& tensors = file.tensors();
  ASSERT_EQ(tensors.size(), 11u);
  EXPECT_EQ(values_of(tensors.at("model.embed_tokens.weight")), count_up(0, 24));
  EXPECT_EQ(tensors.at("lm_head.weight").shape, (std::vector<int64_t>{4, 6}));
  EXPECT_EQ(values_of(tensors.at("lm_head.weight")), count_up(0, 24));
  EXPECT_EQ(values_of(tensors.at("rows")), count_up(6, 12));
  EXPECT_EQ(tensors.at("turned").shape, (std::vector<int64_t>{6, 4}));
  std::vector<float> turned;
  for (int i = 0; i < 6; ++i) {
    for (const float v : count_up(static_cast<float>(i), 4, 6)) turned.push_back(v);
  }
  EXPECT_EQ(values_of(tensors.at("turned")), turned);
  EXPECT_EQ(values_of(tensors.at("column")), count_up(2, 4, 6));
  EXPECT_EQ(tensors.at("bf16").dtype, FileDType::kBF16);
  EXPECT_EQ(values_of(tensors.at("bf16")), count_up(0, 6));
  EXPECT_EQ(values_of(tensors.at("f16")), count_up(0, 5));
  int64_t integers[2];
  ASSERT_TRUE(tensors.at("i64").read(0, 16, integers).ok());
  EXPECT_EQ(integers[1], int64_t{1} << 40);
  EXPECT_EQ(tensors.at("bool").dtype, FileDType::kBool);
  EXPECT_EQ(values_of(tensors.at("scalar")), std::vector<float>{2.5F});
  EXPECT_EQ(tensors.at("empty").shape, (std::vector<int64_t>{0, 3}));
}

TEST(TorchFile, ReadsWhatTorchWrites) {
  for (const char* name : {"plain.bin", "old.bin", "nested.bin"}) {
    SCOPED_TRACE(name);
    const auto file = TorchFile::open(golden_torch(name));
    ASSERT_TRUE(file.ok()) << file.status().message();
    expect_all(*file.value());
  }
}

TEST(TorchFile, ReadsDictionariesOfModulesAndOfParameters) {
  for (const char* name : {"module.bin", "parameters.bin"}) {
    const auto file = TorchFile::open(golden_torch(name));
    ASSERT_TRUE(file.ok()) << file.status().message();
    EXPECT_EQ(values_of(file.value()->tensors().at("weight")), count_up(0, 6));
    EXPECT_EQ(values_of(file.value()->tensors().at("bias")), count_up(7, 2));
  }
}

TEST(TorchFile, RunsNothing) {
  const auto file = TorchFile::open(golden_torch("hostile.bin"));
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.status().code(), StatusCode::kUnsupported);
  EXPECT_NE(file.status().message().find("hostile.bin"), std::string::npos);
  EXPECT_NE(file.status().message().find(".system'"), std::string::npos) << file.status().message();
  EXPECT_NE(file.status().message().find("save the weights as safetensors"), std::string::npos);
}

TEST(TorchFile, OtherFilesAreRefused) {
  const ScratchFolder folder;
  const std::string path = folder.write("pytorch_model.bin", "version https://git-lfs.github.com");
  const auto file = TorchFile::open(path);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.status().message(),
            path + " is no file of torch.save; save the weights as safetensors");
  EXPECT_EQ(TorchFile::open(folder.file("none.bin")).status().code(), StatusCode::kNotFound);
}

// A changed file is read or refused with its name, and every tensor that it has can be read.
TEST(TorchFile, ChangedFilesNeverCrash) {
  const ScratchFolder folder;
  std::mt19937 rng(11);
  for (const char* name : {"plain.bin", "old.bin"}) {
    const std::string bytes = read_text_file(golden_torch(name)).value();
    for (int i = 0; i < 150; ++i) {
      std::string changed = bytes.substr(0, i % 3 == 0 ? rng() % bytes.size() : bytes.size());
      for (int change = 0; change < 3 && !changed.empty(); ++change) {
        changed[rng() % changed.size()] = static_cast<char>(rng());
      }
      const std::string path = folder.write("x.bin", changed);
      const auto file = TorchFile::open(path);
      if (!file.ok()) {
        EXPECT_NE(file.status().message().find(path), std::string::npos);
        continue;
      }
      for (const auto& [tensor, view] : file.value()->tensors()) {
        std::vector<std::byte> all(static_cast<size_t>(view.num_bytes));
        EXPECT_TRUE(view.read(0, view.num_bytes, all.data()).ok());
      }
    }
  }
}

}  // namespace
}  // namespace foretoken
