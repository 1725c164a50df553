#include "base/files/text_file.h"

#include <gtest/gtest.h>

#include <string>

#include "support/scratch_folder.h"

namespace foretoken {
namespace {

TEST(TextFile, ReadsAllBytes) {
  test::ScratchFolder folder;
  const std::string content("a\0b\r\n\xff", 6);
  auto read = read_text_file(folder.write("file", content));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value(), content);
}

TEST(TextFile, NamesTheMissingFile) {
  test::ScratchFolder folder;
  for (const auto& path : {folder.file("nothing"), folder.path()}) {
    auto read = read_text_file(path);
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.status().code(), StatusCode::kNotFound);
    EXPECT_NE(read.status().message().find(path), std::string::npos);
  }
}

}  // namespace
}  // namespace foretoken
