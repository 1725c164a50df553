#include "engine/measure/cache_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "support/scratch_folder.h"

namespace foretoken {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(CacheFile, EachKeyHasOneNameAndNoFolderHasNone) {
  EXPECT_EQ(cache_path("", "key"), "");
  EXPECT_EQ(cache_path("/a", ""), "/a/cbf29ce484222325.json") << "as every build names it";
  EXPECT_EQ(cache_path("/a", "key"), cache_path("/a", "key"));
  EXPECT_NE(cache_path("/a", "key"), cache_path("/a", "kez"));
}

TEST(CacheFile, IsReplacedWholeAndLeavesNothingBeside) {
  const test::ScratchFolder scratch;
  const std::string path = scratch.file("a/b/c.json");
  for (const char* text : {"first", "second"}) {
    ASSERT_TRUE(write_cache_file(path, text).ok());
    EXPECT_EQ(text_of(path), text);
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch.file("a/b")), {}), 1);
}

TEST(CacheFile, AFolderThatCannotBeMadeIsNamed) {
  const test::ScratchFolder scratch;
  const std::string file = scratch.write("file", "not a folder");
  const Status status = write_cache_file(file + "/c.json", "text");
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find(file), std::string::npos) << status.message();
}

}  // namespace
}  // namespace foretoken
