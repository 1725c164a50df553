#include "hub/cache_folder.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/scratch_folder.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

class CacheFolder : public testing::Test {
 protected:
  CacheFolder() : root_(scratch_.file("models--org--tiny")) {
    for (const std::string& commit : {first_, second_}) {
      fs::create_directories(fs::path(root_) / "snapshots" / commit);
    }
    fs::create_directories(fs::path(root_) / "refs" / "refs" / "pr");
    (void)scratch_.write("models--org--tiny/refs/main", second_);
    (void)scratch_.write("models--org--tiny/refs/refs/pr/1", first_ + "\n");
  }
  std::string snapshot(const std::string& commit) const {
    return (fs::path(root_) / "snapshots" / commit).string();
  }

  test::ScratchFolder scratch_;
  std::string root_;
  const std::string first_ = "abcdef0" + std::string(33, '1');
  const std::string second_ = "abcdef0" + std::string(33, '2');
};

TEST_F(CacheFolder, KnowsRevisionsInEveryForm) {
  EXPECT_EQ(find_cached_commit(root_, "main"), second_);
  EXPECT_EQ(find_cached_commit(root_, "refs/pr/1"), first_);
  EXPECT_EQ(find_cached_commit(root_, first_), first_);
  EXPECT_EQ(find_cached_commit(root_, "abcdef01"), first_);
  EXPECT_EQ(find_cached_commit(root_, "abcdef0"), "") << "two begin so";
  EXPECT_EQ(find_cached_commit(root_, "abcd"), "") << "too short";
  EXPECT_EQ(find_cached_commit(root_, "dev"), "");
  EXPECT_TRUE(is_short_commit("abcdef0"));
  EXPECT_FALSE(is_short_commit(first_));
  EXPECT_FALSE(is_short_commit("feature"));
}

TEST_F(CacheFolder, ARepositoryStandsForItsSnapshot) {
  EXPECT_EQ(folder_in_cache(root_, "").value(), snapshot(second_));
  EXPECT_EQ(folder_in_cache(root_ + "/", "").value(), snapshot(second_));
  EXPECT_EQ(folder_in_cache(root_ + "/snapshots", "").value(), snapshot(second_));
  EXPECT_EQ(folder_in_cache(root_, "refs/pr/1").value(), snapshot(first_));
  EXPECT_EQ(folder_in_cache(root_, "abcdef01").value(), snapshot(first_));
  EXPECT_EQ(folder_in_cache(snapshot(first_), "").value(), snapshot(first_));
  EXPECT_EQ(folder_in_cache(scratch_.path(), "").value(), scratch_.path());
}

TEST_F(CacheFolder, NamesWhatThereIs) {
  const std::string unknown = folder_in_cache(root_, "dev").status().message();
  EXPECT_NE(unknown.find("no snapshot of revision 'dev'; there are main, refs/pr/1, " + first_),
            std::string::npos)
      << unknown;
  fs::remove(fs::path(root_) / "refs" / "main");
  EXPECT_NE(folder_in_cache(root_, "").status().message().find("no snapshot of main"),
            std::string::npos);
  fs::remove_all(snapshot(second_));
  EXPECT_EQ(folder_in_cache(root_, "").value(), snapshot(first_)) << "the only one";
}

}  // namespace
}  // namespace foretoken
