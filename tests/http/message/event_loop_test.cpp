#include "http/message/event_loop.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <system_error>
#include <vector>

#include "support/no_threads.h"

namespace foretoken::http {
namespace {

TEST(HttpEventLoop, RunsWorkInOrderOnItsThread) {
  EventLoop loop;
  loop.start("ft-test");
  std::vector<int> order;
  std::thread::id thread;
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(loop.post([&, i] {
      order.push_back(i);
      thread = std::this_thread::get_id();
    }));
  }
  loop.join();
  ASSERT_EQ(order.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
  EXPECT_NE(thread, std::this_thread::get_id());
}

TEST(HttpEventLoop, AFaultEndsNothing) {
  EventLoop loop;
  loop.start("ft-test");
  bool ran = false;
  loop.post([] { throw std::runtime_error("logged"); });
  loop.post([&] { ran = true; });
  loop.join();
  EXPECT_TRUE(ran);
}

TEST(HttpEventLoop, WorkAfterTheEndIsDropped) {
  EventLoop loop;
  loop.start("ft-test");
  loop.join();
  const auto held = std::make_shared<int>(1);
  EXPECT_FALSE(loop.post([held] { FAIL(); }));
  EXPECT_EQ(held.use_count(), 1);
}

TEST(HttpEventLoop, ALoopWithoutAThreadIsAtItsEnd) {
  EventLoop loop;
  {
    const test::NoThreads none;
    EXPECT_THROW(loop.start("ft-test"), std::system_error);
  }
  EXPECT_FALSE(loop.post([] {}));
  loop.join();
}

}  // namespace
}  // namespace foretoken::http
