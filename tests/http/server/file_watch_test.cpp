#include "http/server/file_watch.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "support/scratch_folder.h"

namespace foretoken::http {
namespace {

TEST(HttpFileWatch, SeesWhatWasWrittenOrRenamedOnce) {
  const test::ScratchFolder folder;
  const std::string certificate = folder.write("a.pem", "one");
  const std::string key = folder.file("a.key");
  FileWatch watch({certificate, key, ""});
  EXPECT_FALSE(watch.changed());
  folder.write("a.pem", "longer");
  EXPECT_FALSE(watch.changed());  // the key may follow
  folder.write("a.key", "two");
  EXPECT_FALSE(watch.changed());
  EXPECT_TRUE(watch.changed());
  EXPECT_FALSE(watch.changed());
  std::filesystem::rename(folder.write("new", "other"), key);
  EXPECT_FALSE(watch.changed());
  EXPECT_TRUE(watch.changed());
  std::filesystem::remove(certificate);
  EXPECT_FALSE(watch.changed());
  EXPECT_TRUE(watch.changed());
}

}  // namespace
}  // namespace foretoken::http
