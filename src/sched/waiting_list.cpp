#include "sched/waiting_list.h"

namespace foretoken {

void WaitingList::push_back(Sequence& sequence) {
  sequence.prev = last_;
  sequence.next = nullptr;
  (last_ != nullptr ? last_->next : first_) = &sequence;
  last_ = &sequence;
  ++size_;
}

void WaitingList::push_front(Sequence& sequence) {
  sequence.prev = nullptr;
  sequence.next = first_;
  (first_ != nullptr ? first_->prev : last_) = &sequence;
  first_ = &sequence;
  ++size_;
}

void WaitingList::remove(Sequence& sequence) {
  (sequence.prev != nullptr ? sequence.prev->next : first_) = sequence.next;
  (sequence.next != nullptr ? sequence.next->prev : last_) = sequence.prev;
  sequence.prev = sequence.next = nullptr;
  --size_;
}

}  // namespace foretoken
