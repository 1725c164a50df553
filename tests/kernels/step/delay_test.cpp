#include "kernels/step/delay.h"

#include "support/gate.h"
#include "support/test_device.h"

namespace foretoken {
namespace {

class DelayTest : public DeviceTest {};

TEST_F(DelayTest, KeepsTheQueueBusyButNotTheHost) {
  delay(queue(), {0});
  drain();
  test::Gate gate;
  queue().call_host([](void* held) { EXPECT_TRUE(static_cast<test::Gate*>(held)->wait()); }, &gate);
  delay(queue(), {50000});
  // Nobody gets here who waits for the queue.
  const auto begin = std::chrono::steady_clock::now();
  gate.open();
  drain();
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(45));
}

}  // namespace
}  // namespace foretoken
