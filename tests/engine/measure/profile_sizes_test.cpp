#include "engine/measure/profile_sizes.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using Sizes = std::vector<int>;

TEST(ProfileSizes, AShortTimeSpansThem) {
  EXPECT_EQ(profile_sizes(1, false), (Sizes{1}));
  EXPECT_EQ(profile_sizes(16, false), (Sizes{1, 4, 16, 2, 8}));
  EXPECT_EQ(profile_sizes(20, false), (Sizes{1, 4, 16, 2, 8, 20}));
}

TEST(ProfileSizes, RowsGoOnBehindTheEndsOfTiles) {
  EXPECT_EQ(profile_sizes(64, true), (Sizes{1, 4, 16, 64, 2, 8, 32}));
  EXPECT_EQ(profile_sizes(72, true), (Sizes{1, 4, 16, 64, 2, 8, 32, 72})) << "not twice";
  EXPECT_EQ(profile_sizes(512, true), (Sizes{1, 4, 16, 64, 256, 2, 8, 32, 128, 512, 72, 144, 288}));
  EXPECT_EQ(profile_sizes(2048, true).size(), 12u + 3u);
}

TEST(ProfileSizes, ManyDraftsAreTimedByFewNumbers) {
  EXPECT_EQ(profile_drafts(0), (Sizes{0}));
  EXPECT_EQ(profile_drafts(1), (Sizes{0, 1}));
  EXPECT_EQ(profile_drafts(3), (Sizes{0, 1, 2, 3}));
  EXPECT_EQ(profile_drafts(16), (Sizes{0, 1, 2, 3, 4, 6, 8, 12, 16}));
}

}  // namespace
}  // namespace foretoken
