#include "hub/repo_cache.h"

#include "hub/hub_fixture.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

class RepoCacheTest : public test::HubFixture {
 protected:
  const RepoId id{"org/tiny", "main"};
  const RepoCache cache{scratch.file("hub"), id};
  const std::string commit = std::string(40, 'c');
};

TEST_F(RepoCacheTest, PathsAreThoseOfHuggingfaceHub) {
  const fs::path hub = scratch.file("hub");
  EXPECT_EQ(cache.root(), hub / "models--org--tiny");
  EXPECT_EQ(RepoCache(hub, {"gpt2", "main"}).root(), hub / "models--gpt2");
  EXPECT_EQ(cache.blob("e"), hub / "models--org--tiny/blobs/e");
  EXPECT_EQ(cache.incomplete("e"), hub / "models--org--tiny/blobs/e.incomplete");
  EXPECT_EQ(cache.lock("e"), hub / ".locks/models--org--tiny/e.lock");
  EXPECT_EQ(cache.snapshot(commit), hub / "models--org--tiny/snapshots" / commit);
}

TEST_F(RepoCacheTest, LinksAreRelativeAndReplaceWhatWasThere) {
  ASSERT_TRUE(cache.make_folders().ok());
  EXPECT_EQ(read(fs::path(options.cache_folder) / "CACHEDIR.TAG").rfind("Signature: 8a477f59", 0),
            0u);
  write(cache.blob("one"), "1");
  write(cache.blob("two"), "22");
  ASSERT_TRUE(cache.link_file(commit, "a.json", "gone").ok());
  EXPECT_FALSE(cache.has_file(commit, "a.json", -1));
  ASSERT_TRUE(cache.link_file(commit, "a.json", "one").ok());
  EXPECT_EQ(fs::read_symlink(cache.snapshot(commit) / "a.json"), "../../blobs/one");
  ASSERT_TRUE(cache.link_file(commit, "a.json", "two").ok());
  EXPECT_EQ(read(cache.snapshot(commit) / "a.json"), "22");
  EXPECT_TRUE(cache.has_file(commit, "a.json", 2));
  EXPECT_FALSE(cache.has_file(commit, "a.json", 3));
  ASSERT_TRUE(cache.link_file(commit, "sub/b.json", "one").ok());
  EXPECT_EQ(fs::read_symlink(cache.snapshot(commit) / "sub/b.json"), "../../../blobs/one");
  EXPECT_EQ(count_files(cache.snapshot(commit)), 2);
}

TEST_F(RepoCacheTest, RefsNameCommits) {
  EXPECT_EQ(cache.find_commit("main"), "");
  EXPECT_EQ(cache.find_commit(commit), commit);
  ASSERT_TRUE(cache.make_folders().ok());
  ASSERT_TRUE(cache.write_ref("main", commit).ok());
  ASSERT_TRUE(cache.write_ref("refs/pr/1", commit).ok());
  ASSERT_TRUE(cache.write_ref(commit, commit).ok());
  EXPECT_EQ(read(cache.root() / "refs/main"), commit);
  EXPECT_EQ(read(cache.root() / "refs/refs/pr/1"), commit);
  EXPECT_EQ(count_files(cache.root() / "refs"), 2);
  EXPECT_EQ(cache.find_commit("main"), commit);
  write(cache.root() / "refs/main", "../../evil");
  EXPECT_EQ(cache.find_commit("main"), "");
}

TEST_F(RepoCacheTest, BlobsCountOnlyWithTheirSize) {
  write(cache.blob("e"), "123");
  EXPECT_TRUE(cache.has_blob("e", 3));
  EXPECT_TRUE(cache.has_blob("e", -1));
  EXPECT_FALSE(cache.has_blob("e", 4));
  EXPECT_FALSE(cache.has_blob("none", -1));
  write(cache.blob("empty"), "");
  EXPECT_FALSE(cache.has_blob("empty", -1));
  EXPECT_TRUE(cache.has_blob("empty", 0));
}

TEST_F(RepoCacheTest, UnwritableFoldersAreNamed) {
  const RepoCache bad("/proc/nothing", id);
  for (const Status& status :
       {bad.make_folders(), bad.link_file(commit, "a", "e"), bad.write_ref("main", commit)}) {
    EXPECT_NE(status.message().find("/proc/nothing"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("--download-dir"), std::string::npos) << status.message();
  }
}

}  // namespace
}  // namespace foretoken
