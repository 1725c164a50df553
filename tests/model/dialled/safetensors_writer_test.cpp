#include "dialled/safetensors_writer.h"

#include <gtest/gtest.h>

#include <cstring>

#include "model/files/forms/convert.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

std::function<void(std::byte*)> bytes_of(const std::vector<uint16_t>& values) {
  return [values](std::byte* out) { std::memcpy(out, values.data(), values.size() * 2); };
}

TEST(SafetensorsWriter, RoundTrip) {
  const test::ScratchFolder folder;
  const std::vector<float> floats = {1, -2.5f, 3e8f, 0, 1e-9f, 6};
  const std::vector<TensorToWrite> tensors = {
      {"z.first",
       FileDType::kF32,
       {2, 3},
       [&](std::byte* out) { std::memcpy(out, floats.data(), 24); }},
      {"a \"quoted\"", FileDType::kBF16, {3}, bytes_of({1, 2, 3})},
      {"half", FileDType::kF16, {1, 1, 2}, bytes_of({7, 8})},
      {"empty", FileDType::kF32, {0}, [](std::byte*) {}}};
  const std::string path = folder.file("model.safetensors");
  ASSERT_TRUE(write_safetensors(path, tensors).ok());
  const auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_EQ(file.value()->tensors().size(), 4u);
  const TensorView& first = file.value()->tensors().at("z.first");
  EXPECT_EQ(first.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(std::memcmp(first.data, floats.data(), 24), 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first.data) % 8, 0u);
  const TensorView& half = file.value()->tensors().at("half");
  EXPECT_EQ(half.dtype, FileDType::kF16);
  EXPECT_EQ(std::to_integer<int>(half.data[2]), 8);
  EXPECT_EQ(file.value()->tensors().at("a \"quoted\"").num_bytes, 6);
}

TEST(SafetensorsWriter, IdListsAndFlags) {
  const test::ScratchFolder folder;
  const std::vector<int64_t> ids = {3, -1, int64_t{1} << 40};
  const std::vector<TensorToWrite> tensors = {
      {"ids", FileDType::kI64, {3}, [&](std::byte* out) { std::memcpy(out, ids.data(), 24); }},
      {"flags", FileDType::kBool, {2}, [](std::byte* out) { out[0] = out[1] = std::byte{1}; }}};
  const std::string path = folder.file("model.safetensors");
  ASSERT_TRUE(write_safetensors(path, tensors).ok());
  const auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(read_integers(file.value()->tensors().at("ids")).value(), ids);
  const TensorView& flags = file.value()->tensors().at("flags");
  EXPECT_EQ(flags.dtype, FileDType::kBool);
  EXPECT_EQ(flags.num_bytes, 2);
}

// Large enough for several threads.
TEST(SafetensorsWriter, LargeFilesHaveEveryTensorInItsPlace) {
  const test::ScratchFolder folder;
  constexpr int64_t kCount = 1 << 20;
  std::vector<TensorToWrite> tensors;
  for (int i = 0; i < 12; ++i) {
    tensors.push_back({"t" + std::to_string(i), FileDType::kF32, {kCount + i}, [i](std::byte* out) {
                         auto* values = reinterpret_cast<float*>(out);
                         for (int64_t k = 0; k < kCount + i; ++k) values[k] = float(k % 1000 + i);
                       }});
  }
  const std::string path = folder.file("model.safetensors");
  ASSERT_TRUE(write_safetensors(path, tensors).ok());
  const auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  for (int i = 0; i < 12; ++i) {
    const TensorView& tensor = file.value()->tensors().at("t" + std::to_string(i));
    ASSERT_EQ(tensor.num_elements(), kCount + i);
    for (int64_t k = 0; k < kCount + i; k += 997) {
      float value = 0;
      std::memcpy(&value, tensor.data + 4 * k, 4);
      ASSERT_EQ(value, float(k % 1000 + i)) << i << " " << k;
    }
  }
}

TEST(SafetensorsWriter, FullDiskIsAnError) {
  const TensorToWrite tensor{"t", FileDType::kF32, {1000}, [](std::byte*) {}};
  const Status status = write_safetensors("/dev/full", {&tensor, 1});
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("room for"), std::string::npos) << status.message();
}

TEST(SafetensorsWriter, UnwritableFileIsNamed) {
  const Status status = write_safetensors("/nonexistent/x.safetensors", {});
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("/nonexistent/x.safetensors"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
