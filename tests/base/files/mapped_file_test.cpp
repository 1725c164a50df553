#include "base/files/mapped_file.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "support/scratch_folder.h"

namespace foretoken {
namespace {

TEST(MappedFile, MapsAndReads) {
  const test::ScratchFolder folder;
  const auto file = MappedFile::open(folder.write("digits", "0123456789"), 1, "short");
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file.value()->size(), 10u);
  EXPECT_EQ(static_cast<char>(file.value()->memory()[3]), '3');
  char bytes[4] = {};
  EXPECT_EQ(read_at(file.value()->descriptor(), 2, 4, bytes), 4);
  EXPECT_EQ(std::string(bytes, 4), "2345");
  EXPECT_EQ(read_at(file.value()->descriptor(), 8, 4, bytes), 2);
  EXPECT_EQ(read_at(file.value()->descriptor(), 99, 4, bytes), 0);
  EXPECT_EQ(read_at(-1, 0, 4, bytes), -1);
  EXPECT_EQ(errno, EBADF);
}

TEST(MappedFile, NamesWhatIsWrong) {
  const test::ScratchFolder folder;
  const std::string path = folder.write("short", "123");
  EXPECT_EQ(MappedFile::open(path, 4, "is short").status().message(), path + ": is short");
  EXPECT_EQ(MappedFile::open(folder.path(), 1, "is odd").status().code(),
            StatusCode::kInvalidArgument);
  const std::string pointer = folder.write(
      "pointer", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n");
  EXPECT_NE(MappedFile::open(pointer, 1, "").status().message().find("git lfs pull"),
            std::string::npos);
  EXPECT_EQ(MappedFile::open(path + "_none", 1, "").status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace foretoken
