#include "base/text_file.h"

#include <gtest/gtest.h>

#include <string>

#include "text/text_fixtures.h"

namespace foretoken {
namespace {

TEST(TextFile, ReadsAllBytes) {
  TemporaryFolder folder;
  const std::string content("a\0b\r\n\xff", 6);
  folder.write("file", content);
  auto read = read_text_file(folder.path() / "file");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value(), content);
}

TEST(TextFile, NamesTheMissingFile) {
  TemporaryFolder folder;
  for (const auto& path : {folder.path() / "nothing", folder.path()}) {
    auto read = read_text_file(path);
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.status().code(), StatusCode::kNotFound);
    EXPECT_NE(read.status().message().find(path.string()), std::string::npos);
  }
}

}  // namespace
}  // namespace foretoken
