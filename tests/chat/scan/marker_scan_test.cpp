#include "chat/scan/marker_scan.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(MarkerScan, HoldsBackOnlyWhatMayBecomeAMarker) {
  MarkerScan scan({"<ab>", "[x"});
  std::string text;
  for (const char byte : std::string("1<<a")) EXPECT_EQ(scan.feed(byte, &text), -1);
  EXPECT_EQ(text, "1<");
  EXPECT_EQ(scan.feed('b', &text), -1);
  EXPECT_EQ(scan.feed('>', &text), 0);
  EXPECT_EQ(text, "1<");
  EXPECT_EQ(scan.feed('[', &text), -1);
  EXPECT_EQ(scan.feed('x', &text), 1);
  EXPECT_EQ(scan.feed('[', &text), -1);
  EXPECT_EQ(scan.take_held(), "[");
  EXPECT_EQ(scan.max_len(), 4u);
}

TEST(MarkerScan, NoMarkers) {
  MarkerScan scan({});
  std::string text;
  EXPECT_EQ(scan.feed('a', &text), -1);
  EXPECT_EQ(text, "a");
  EXPECT_EQ(scan.max_len(), 0u);
}

TEST(ExpectScan, SkipsSpaceBeforeButNotWithin) {
  ExpectScan scan({"ab", "ac"});
  EXPECT_EQ(scan.feed('\n'), ExpectScan::kMore);
  EXPECT_EQ(scan.feed('a'), ExpectScan::kMore);
  EXPECT_EQ(scan.feed('c'), 1);
  EXPECT_EQ(scan.feed('a'), ExpectScan::kMore);
  EXPECT_EQ(scan.feed(' '), ExpectScan::kFlaw);
}

}  // namespace
}  // namespace foretoken
