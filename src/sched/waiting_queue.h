#pragma once
#include "sched/sequence.h"

namespace foretoken {

// The waiting sequences, the one that runs first in front (see runs_before). A pairing heap
// (Fredman et al. 1986) whose links lie in the sequences: nothing is allocated, and a sequence
// among many thousands enters at once and leaves in logarithmic time. Engine thread only.
class WaitingQueue {
 public:
  bool empty() const { return root_ == nullptr; }
  int size() const { return size_; }
  Sequence* front() const { return root_; }

  void push(Sequence& sequence);
  // Takes out any of its sequences.
  void remove(Sequence& sequence);

 private:
  Sequence* root_ = nullptr;
  int size_ = 0;
};

}  // namespace foretoken
