#include "gguf/container/gguf_writer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "gguf/container/gguf_file.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

TEST(GgufWriter, WhatIsWrittenIsRead) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("written.gguf");
  GgufKeys keys;
  keys.add_text("name", "x");
  keys.add_u32("count", 7);
  keys.add_f32("scale", 0.5F);
  keys.add_flag("on", true);
  keys.add_texts("words", std::vector<std::string>{"a", "", "bc"});
  keys.add_i32s("kinds", std::vector<int32_t>{-1, 2});
  keys.add_f32s("scores", std::vector<float>{0.25F});
  const std::vector<GgufTensorEntry> tensors = {{"one", find_block_type(0), {3}},
                                                {"two", find_block_type(8), {2, 32}}};
  auto writer = GgufWriter::create(path, keys, tensors, true);
  ASSERT_TRUE(writer.ok()) << writer.status().message();
  const std::vector<std::byte> one(12, std::byte{1}), half(34, std::byte{2});
  ASSERT_TRUE(writer.value()->append(one).ok());
  ASSERT_TRUE(writer.value()->append(half).ok());
  ASSERT_TRUE(writer.value()->append(half).ok());
  ASSERT_TRUE(writer.value()->finish().ok());
  EXPECT_EQ(static_cast<int64_t>(std::filesystem::file_size(path)), writer.value()->size());

  const auto file = GgufFile::open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file.value()->text("name").value(), "x");
  EXPECT_EQ(file.value()->integer("count").value(), 7);
  EXPECT_EQ(file.value()->number("scale").value(), 0.5);
  EXPECT_EQ(file.value()->flag("on").value(), true);
  EXPECT_EQ(*file.value()->texts("words").value(), (std::vector<std::string>{"a", "", "bc"}));
  EXPECT_EQ(file.value()->integers("kinds").value(), (std::vector<int64_t>{-1, 2}));
  EXPECT_EQ(file.value()->numbers("scores").value(), (std::vector<double>{0.25}));
  const GgufTensor& two = file.value()->tensors().at("two");
  EXPECT_EQ(two.shape, (std::vector<int64_t>{2, 32}));
  EXPECT_EQ(two.offset % 32, 0);
  EXPECT_EQ(std::memcmp(two.part->file->memory() + two.offset + 34, half.data(), 34), 0);
}

}  // namespace
}  // namespace foretoken
