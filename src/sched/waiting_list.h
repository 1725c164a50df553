#pragma once
#include "sched/sequence.h"

namespace foretoken {

// First come, first served; a preempted sequence goes to the front. Links live in the sequences, so
// nothing is allocated. Engine thread only.
class WaitingList {
 public:
  bool empty() const { return first_ == nullptr; }
  int size() const { return size_; }
  Sequence* front() const { return first_; }

  void push_back(Sequence& sequence);
  void push_front(Sequence& sequence);
  void remove(Sequence& sequence);

 private:
  Sequence* first_ = nullptr;
  Sequence* last_ = nullptr;
  int size_ = 0;
};

}  // namespace foretoken
