#include "hub/blob_writer.h"

#include <signal.h>
#include <sys/resource.h>

#include "hub/hub_fixture.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

class BlobWriterTest : public test::HubFixture {
 protected:
  const std::string content = weights(100000);
  const std::string etag = [this] {
    Digest digest(DigestKind::kSha256, 0);
    digest.update(content);
    return digest.finish();
  }();
  const HubFile file{"w.safetensors", etag, 100000};
  const fs::path path = scratch.file("blob.incomplete");
  const fs::path target = scratch.file("blob");

  BlobWriter open() { return std::move(BlobWriter::open(path, file)).value(); }
};

TEST_F(BlobWriterTest, WritesAndPublishes) {
  BlobWriter writer = open();
  ASSERT_TRUE(writer.append(content.substr(0, 70000)).ok());
  EXPECT_FALSE(writer.is_whole());
  ASSERT_TRUE(writer.append(content.substr(70000)).ok());
  EXPECT_TRUE(writer.is_whole());
  EXPECT_TRUE(writer.publish(target).value());
  EXPECT_EQ(read(target), content);
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(BlobWriterTest, TakesInWhatIsThere) {
  write(path, content.substr(0, 60000));
  BlobWriter writer = open();
  EXPECT_EQ(writer.num_bytes(), 60000);
  ASSERT_TRUE(writer.append(content.substr(60000)).ok());
  EXPECT_TRUE(writer.publish(target).value());
}

TEST_F(BlobWriterTest, WrongBytesLeaveNothing) {
  write(path, "x" + content.substr(1, 59999));
  BlobWriter writer = open();
  ASSERT_TRUE(writer.append(content.substr(60000)).ok());
  EXPECT_FALSE(writer.publish(target).value());
  EXPECT_FALSE(fs::exists(path));
  EXPECT_FALSE(fs::exists(target));
}

TEST_F(BlobWriterTest, TooManyBytesAreRefused) {
  write(path, content + "more");
  BlobWriter writer = open();
  EXPECT_EQ(writer.num_bytes(), 0);
  ASSERT_TRUE(writer.append(content).ok());
  const Status status = writer.append("x");
  EXPECT_NE(status.message().find("w.safetensors"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("100000"), std::string::npos) << status.message();
}

TEST_F(BlobWriterTest, FollowsNoLink) {
  write(scratch.file("elsewhere"), "mine");
  fs::create_symlink(scratch.file("elsewhere"), path);
  const auto writer = BlobWriter::open(path, file);
  EXPECT_FALSE(writer.ok());
  EXPECT_EQ(read(scratch.file("elsewhere")), "mine");
}

TEST_F(BlobWriterTest, FullDiskNamesFileNeededAndFree) {
  BlobWriter writer = open();
  rlimit before = {};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {30000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const Status status = writer.append(content);
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  for (const char* part : {"w.safetensors", "needs 70000 bytes", "are free in", "--download-dir"}) {
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  }
  EXPECT_EQ(fs::file_size(path), 30000u);
  ASSERT_TRUE(open().append(content.substr(30000)).ok());
}

TEST(FreeDiskBytes, OfTheNearestFolder) {
  EXPECT_GT(free_disk_bytes("/"), 0);
  EXPECT_EQ(free_disk_bytes("/proc/nothing/there"), free_disk_bytes("/proc"));
}

}  // namespace
}  // namespace foretoken
