#pragma once
#include <latch>

namespace foretoken {

// The place of one engine among several that start at once on one host. They wait for each other
// before they measure, so that each measures its steps beside the others' steps. Given up when
// destroyed: an engine that measures nothing, or fails, keeps nobody waiting. The first one writes
// what is written once. One thread each.
class StartBarrier {
 public:
  // `engines` has one count for each engine and outlives the barriers.
  StartBarrier(std::latch& engines, bool is_first) : engines_(engines), is_first_(is_first) {}
  ~StartBarrier() {
    if (!has_met_) engines_.count_down();
  }
  StartBarrier(const StartBarrier&) = delete;
  StartBarrier& operator=(const StartBarrier&) = delete;

  bool is_first() const { return is_first_; }

  // At most once. Blocks until every other engine waits here too or has given up its barrier.
  void wait_for_others() {
    has_met_ = true;
    engines_.arrive_and_wait();
  }

 private:
  std::latch& engines_;
  const bool is_first_;
  bool has_met_ = false;
};

}  // namespace foretoken
