#pragma once
#include <atomic>
#include <memory>

#include "support/counting_queue.h"
#include "support/gate.h"

namespace foretoken::test {

// A device, or the thread that feeds it, which stands still when told to, once. Told before that
// thread has anything to do.
class HeldQueue final : public CountingQueue {
 public:
  using CountingQueue::CountingQueue;

  // The device waits before the next graph until the gate is opened, which outlives the queue.
  std::shared_ptr<Gate> hold() {
    hold_ = Hold::kDevice;
    return gate_;
  }
  // The same, until the graph behind it is enqueued.
  void hold_until_next() { hold_ = Hold::kDeviceUntilNext; }
  // The graph behind the next one is enqueued when the device has begun the next one, which learns
  // nothing by that of what its feeder has written since.
  void hold_second() {
    begun_ = false;
    hold_ = Hold::kFeeder;
  }

  // Every graph notes that it has begun: a host call before it would be a task of its own.
  void begin_capture() override {
    CountingQueue::begin_capture();
    call_host(
        [](void* begun) {
          static_cast<std::atomic<bool>*>(begun)->store(true, std::memory_order_relaxed);
        },
        &begun_);
  }

  void replay(Graph& graph) override {
    const Hold hold = hold_;
    switch (hold) {
      case Hold::kNone:
        break;
      case Hold::kDevice:
      case Hold::kDeviceUntilNext:
        hold_ = hold == Hold::kDevice ? Hold::kNone : Hold::kRelease;
        call_host([](void* gate) { (void)static_cast<Gate*>(gate)->wait(); }, gate_.get());
        break;
      case Hold::kRelease:
        hold_ = Hold::kNone;
        gate_->open();
        break;
      case Hold::kFeeder:
        hold_ = Hold::kAwait;
        break;
      case Hold::kAwait:
        hold_ = Hold::kNone;
        (void)eventually([this] { return begun_.load(std::memory_order_relaxed); });
        break;
    }
    CountingQueue::replay(graph);
  }

 private:
  // What the next replay does.
  enum class Hold : uint8_t { kNone, kDevice, kDeviceUntilNext, kRelease, kFeeder, kAwait };

  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  std::atomic<Hold> hold_ = Hold::kNone;
  std::atomic<bool> begun_ = false;
};

// For TestHooks::wrap_queue. `*queue` lives as long as the engine, or longer where its device was
// given up.
inline auto wrap_into(std::atomic<HeldQueue*>* queue) {
  return [queue](std::unique_ptr<Queue> real) -> std::unique_ptr<Queue> {
    auto held = std::make_unique<HeldQueue>(std::move(real));
    *queue = held.get();
    return held;
  };
}

}  // namespace foretoken::test
