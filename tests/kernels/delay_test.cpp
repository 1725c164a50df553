#include "kernels/delay.h"

#include "support/test_device.h"

namespace foretoken {
namespace {

class DelayTest : public DeviceTest {};

TEST_F(DelayTest, KeepsTheQueueBusyButNotTheHost) {
  delay(queue(), {0});
  drain();
  const auto begin = std::chrono::steady_clock::now();
  delay(queue(), {50000});
  const auto enqueued = std::chrono::steady_clock::now();
  drain();
  const auto end = std::chrono::steady_clock::now();
  EXPECT_LT(enqueued - begin, std::chrono::milliseconds(40));
  EXPECT_GE(end - begin, std::chrono::milliseconds(45));
}

}  // namespace
}  // namespace foretoken
