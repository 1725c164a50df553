#include "gguf/gguf_file.h"

#include <gtest/gtest.h>

#include "gguf/gguf_bytes.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

class GgufFileTest : public ::testing::Test {
 protected:
  const test::ScratchFolder folder_;
};

TEST_F(GgufFileTest, TypedValues) {
  test::GgufBytes bytes(0, 5);
  bytes.text_value("text", "x").u32_value("size", 7).key("real", 6).number(0.5F);
  bytes.key("huge", 10).number(UINT64_MAX);
  bytes.key("many", 9).number(uint32_t{5}).number(uint64_t{1}).number(int32_t{-3}).align();
  const auto file = GgufFile::open(bytes.write(folder_.file("typed.gguf")));
  ASSERT_TRUE(file.ok()) << file.status().message();
  const GgufFile& gguf = *file.value();
  EXPECT_EQ(gguf.text("text").value(), "x");
  EXPECT_EQ(gguf.integer("size").value(), 7);
  EXPECT_EQ(gguf.number("size").value(), 7.0);
  EXPECT_EQ(gguf.number("real").value(), 0.5);
  EXPECT_EQ(gguf.integers("many").value(), std::vector<int64_t>{-3});
  EXPECT_EQ(gguf.numbers("many").value(), std::vector<double>{-3});
  EXPECT_EQ(gguf.text("nothing").value(), std::nullopt);
  EXPECT_EQ(gguf.texts("nothing").value(), nullptr);
  EXPECT_TRUE(gguf.integers("nothing").value().empty());
  const std::string wanted = gguf.path() + ": 'huge' must be an integer";
  EXPECT_EQ(gguf.integer("huge").status().message().substr(0, wanted.size()), wanted);
  EXPECT_FALSE(gguf.integer("real").ok());
  EXPECT_FALSE(gguf.text("size").ok());
  EXPECT_FALSE(gguf.flag("size").ok());
  EXPECT_FALSE(gguf.texts("many").ok());
  EXPECT_FALSE(gguf.integers("text").ok());
}

TEST_F(GgufFileTest, ErrorsNameTheFile) {
  EXPECT_EQ(GgufFile::open(folder_.file("missing.gguf")).status().code(), StatusCode::kNotFound);
  const std::string empty = test::GgufBytes(9, 9).write(folder_.file("short.gguf"));
  const Status status = GgufFile::open(empty).status();
  EXPECT_EQ(status.message().find(empty + ": it ends too early"), 0u) << status.message();
}

TEST_F(GgufFileTest, ReadsBytes) {
  const auto file = GgufFile::open(test::golden_gguf("llama.gguf"));
  ASSERT_TRUE(file.ok());
  char magic[4];
  ASSERT_TRUE(file.value()->read(0, 4, magic).ok());
  EXPECT_EQ(std::string(magic, 4), "GGUF");
  EXPECT_FALSE(file.value()->read(int64_t{1} << 30, 1, magic).ok());
}

TEST(IsGguf, ByTheEnding) {
  EXPECT_TRUE(is_gguf("a/b.gguf"));
  EXPECT_FALSE(is_gguf("a/b"));
}

}  // namespace
}  // namespace foretoken
