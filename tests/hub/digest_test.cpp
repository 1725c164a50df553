#include "hub/digest.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

std::string digest(DigestKind kind, std::string_view text) {
  Digest running(kind, static_cast<int64_t>(text.size()));
  running.update(text.substr(0, text.size() / 2));
  running.update(text.substr(text.size() / 2));
  return running.finish();
}

TEST(Digest, KnownValues) {
  EXPECT_EQ(digest(DigestKind::kSha256, "abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  // As `git hash-object` prints them.
  EXPECT_EQ(digest(DigestKind::kGitSha1, "hello\n"), "ce013625030ba8dba906f756967f9e9ca394464a");
  EXPECT_EQ(digest(DigestKind::kGitSha1, ""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
  EXPECT_EQ(digest(DigestKind::kNone, "abc"), "");
}

TEST(Digest, KindFollowsTheShapeOfTheEtag) {
  EXPECT_EQ(digest_kind(std::string(64, 'a')), DigestKind::kSha256);
  EXPECT_EQ(digest_kind(std::string(40, '0')), DigestKind::kGitSha1);
  EXPECT_EQ(digest_kind(std::string(40, 'x')), DigestKind::kNone);
  EXPECT_EQ(digest_kind("5d41402abc4b2a76b9719d911017c592"), DigestKind::kNone);
}

}  // namespace
}  // namespace foretoken
