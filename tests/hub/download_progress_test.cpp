#include "hub/download_progress.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace foretoken {
namespace {

TEST(DownloadProgress, FirstAndLastAlwaysTheRestNowAndThen) {
  HubOptions options;
  std::vector<int64_t> seen;
  options.progress = [&seen](const std::string&, int64_t done, int64_t) { seen.push_back(done); };
  DownloadProgress progress(options);
  for (int64_t done = 0; done <= 1000; ++done) progress.report("a", done, 1000);
  ASSERT_GE(seen.size(), 2u);
  EXPECT_LT(seen.size(), 500u);
  EXPECT_EQ(seen.front(), 0);
  EXPECT_EQ(seen.back(), 1000);
}

TEST(DownloadProgress, NeverTwoAtOnce) {
  HubOptions options;
  std::atomic<int> inside{0};
  std::atomic<bool> overlapped{false};
  options.progress = [&](const std::string&, int64_t, int64_t) {
    if (inside.fetch_add(1) > 0) overlapped = true;
    inside.fetch_sub(1);
  };
  DownloadProgress progress(options);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&progress] {
      for (int k = 0; k < 1000; ++k) progress.report("a", 5, 5);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(overlapped.load());
}

TEST(DownloadProgress, NobodyNeedListen) { DownloadProgress(HubOptions()).report("a", 0, 1); }

}  // namespace
}  // namespace foretoken
