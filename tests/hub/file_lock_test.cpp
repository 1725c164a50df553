#include "hub/file_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

#include "support/scratch_folder.h"

namespace foretoken {
namespace {

TEST(FileLock, OneHolderAtATime) {
  const test::ScratchFolder scratch;
  const std::string path = scratch.file("a/b.lock");
  const auto never = [] { return false; };
  std::atomic<int> num_holders{0};
  std::atomic<bool> overlapped{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const Result<FileLock> lock = FileLock::take(path, never);
      if (!lock.ok() || num_holders.fetch_add(1) > 0) overlapped = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      num_holders.fetch_sub(1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(overlapped.load());
}

TEST(FileLock, WaitingCanBeCancelled) {
  const test::ScratchFolder scratch;
  const std::string path = scratch.file("b.lock");
  std::optional<Result<FileLock>> first = FileLock::take(path, [] { return false; });
  ASSERT_TRUE(first->ok());
  int asked = 0;
  const Result<FileLock> second = FileLock::take(path, [&asked] { return ++asked > 2; });
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), StatusCode::kAborted);
  first.reset();
  EXPECT_TRUE(FileLock::take(path, [] { return true; }).ok());
}

TEST(FileLock, UnwritablePlace) {
  const Result<FileLock> lock = FileLock::take("/proc/nothing/x.lock", [] { return false; });
  ASSERT_FALSE(lock.ok());
  EXPECT_NE(lock.status().message().find("/proc/nothing/x.lock"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
