#include "group/agreement.h"

#include <gtest/gtest.h>

namespace foretoken::group {
namespace {

const AgreedParts kParts = {{"version", "0.1.0"}, {"--max-num-seqs", "64"}, {"--dtype", "auto"}};

TEST(Agreement, EqualPartsAgreeInAnyOrder) {
  const AgreedParts turned(kParts.rbegin(), kParts.rend());
  EXPECT_FALSE(first_difference(kParts, turned, "rank 1"));
}

TEST(Agreement, TheSentenceNamesTheFirstDifference) {
  AgreedParts other = kParts;
  other[1].value = "32";
  other[2].value = "bfloat16";
  EXPECT_EQ(*first_difference(kParts, other, "rank 1 (tp 1)"),
            "rank 1 (tp 1) has --max-num-seqs 32, rank 0 has 64; start all ranks alike");
  other = kParts;
  other.pop_back();
  EXPECT_EQ(*first_difference(kParts, other, "rank 2"), "rank 2 says nothing of --dtype");
  EXPECT_TRUE(first_difference(other, kParts, "rank 2"));
}

TEST(Agreement, DigestsTellTextsApart) {
  EXPECT_EQ(digest(""), "cbf29ce484222325");
  EXPECT_EQ(digest("a"), "af63dc4c8601ec8c");
  EXPECT_NE(digest("{\"a\":1}"), digest("{\"a\":2}"));
}

}  // namespace
}  // namespace foretoken::group
