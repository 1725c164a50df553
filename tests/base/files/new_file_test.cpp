#include "base/files/new_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/files/text_file.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

class NewFileTest : public ::testing::Test {
 protected:
  const test::ScratchFolder folder_;
  const std::string path_ = folder_.file("a");
};

TEST_F(NewFileTest, IsThereOnceCommitted) {
  auto file = NewFile::create(path_, 4, false);
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_TRUE(file.value()->append("ab", 2).ok());
  EXPECT_FALSE(fs::exists(path_));
  ASSERT_TRUE(file.value()->append("cd", 2).ok());
  EXPECT_EQ(file.value()->size(), 4);
  ASSERT_TRUE(file.value()->commit().ok());
  EXPECT_EQ(read_text_file(path_).value(), "abcd");
  EXPECT_FALSE(fs::exists(path_ + ".partial"));
}

TEST_F(NewFileTest, LeavesNothingBehind) {
  ASSERT_TRUE(NewFile::create(path_, 1, false).value()->append("x", 1).ok());
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(NewFileTest, ReplacesOnlyWhenTold) {
  ASSERT_TRUE(NewFile::create(path_, 1, false).value()->commit().ok());
  EXPECT_NE(NewFile::create(path_, 1, false).status().message().find("--force"), std::string::npos);
  EXPECT_TRUE(NewFile::create(path_, 1, true).ok());
}

TEST_F(NewFileTest, OneAtATimeWritesAPath) {
  auto first = NewFile::create(path_, 1, true);
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(first.value()->append("x", 1).ok());
  EXPECT_NE(NewFile::create(path_, 1, true).status().message().find("another process"),
            std::string::npos);
  ASSERT_TRUE(first.value()->commit().ok());
  EXPECT_EQ(read_text_file(path_).value(), "x");
  EXPECT_TRUE(NewFile::create(path_, 1, true).ok());
}

TEST_F(NewFileTest, ReplacesRegularFilesOnly) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_NE(NewFile::create(path_, 1, true).status().message().find("no regular file"),
            std::string::npos);
}

TEST_F(NewFileTest, NamesWhatIsWrong) {
  EXPECT_NE(NewFile::create(folder_.path(), 1, true).status().message().find("is a folder"),
            std::string::npos);
  EXPECT_NE(NewFile::create(folder_.file("no/a"), 1, true)
                .status()
                .message()
                .find("No such file or directory"),
            std::string::npos);
  const Status full = NewFile::create(path_, INT64_MAX, false).status();
  EXPECT_EQ(full.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(full.message().find("MiB left"), std::string::npos);
}

TEST_F(NewFileTest, AFullDiskIsNamed) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  fs::create_symlink("/dev/full", path_ + ".partial");
  auto file = NewFile::create(path_, 1, false);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const Status status = file.value()->append("x", 1);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("make room"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace foretoken
