#include "http/message/write_progress.h"

#include <gtest/gtest.h>

namespace foretoken::http {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr WriteProgress::Time kStart{std::chrono::hours(1)};

TEST(HttpWriteProgress, ASlowButSteadyReaderIsNeverSilentForLong) {
  WriteProgress progress;
  progress.begin(kStart);
  for (int i = 1; i <= 1000; ++i) {
    const auto now = kStart + milliseconds(900) * i;
    // In turns: the system takes more, and it acknowledges some of what it had.
    progress.note(now, 1000 + static_cast<uint64_t>(i / 2), static_cast<size_t>(5000 - i));
    EXPECT_EQ(progress.silence(now + milliseconds(250)), milliseconds(250)) << i;
  }
}

TEST(HttpWriteProgress, AReaderThatTakesNothingIsSilent) {
  WriteProgress progress;
  progress.begin(kStart);
  progress.note(kStart + seconds(1), 1000, 800);
  for (int i = 2; i <= 60; ++i) progress.note(kStart + seconds(i), 1000, 800);
  EXPECT_EQ(progress.silence(kStart + seconds(60)), seconds(59));
  progress.note(kStart + seconds(61), 1000, 799);
  EXPECT_EQ(progress.silence(kStart + seconds(61)), seconds(0));
}

TEST(HttpWriteProgress, WhereNothingIsWrittenNobodyIsSilent) {
  WriteProgress progress;
  progress.begin(kStart);
  progress.note(kStart + seconds(1), 1000, 800);
  progress.begin(kStart + seconds(100));
  EXPECT_EQ(progress.silence(kStart + seconds(101)), seconds(1));
}

}  // namespace
}  // namespace foretoken::http
