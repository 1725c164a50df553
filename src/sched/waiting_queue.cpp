#include "sched/waiting_queue.h"

#include <utility>

namespace foretoken {
namespace {

// Both are roots without siblings, or null.
Sequence* merge(Sequence* a, Sequence* b) {
  if (a == nullptr || b == nullptr) return a != nullptr ? a : b;
  if (runs_before(*b, *a)) std::swap(a, b);
  b->prev = a;
  b->next = a->child;
  if (b->next != nullptr) b->next->prev = b;
  a->child = b;
  return a;
}

Sequence* detach(Sequence* sequence) {
  sequence->next = sequence->prev = nullptr;
  return sequence;
}

// Makes one heap of siblings: in pairs from the left, then all pairs from the right.
Sequence* merge_siblings(Sequence* first) {
  Sequence* pairs = nullptr;
  while (first != nullptr) {
    Sequence* second = first->next;
    Sequence* rest = second != nullptr ? second->next : nullptr;
    Sequence* pair = merge(detach(first), second != nullptr ? detach(second) : nullptr);
    pair->next = pairs;
    pairs = pair;
    first = rest;
  }
  Sequence* root = nullptr;
  while (pairs != nullptr) {
    Sequence* rest = pairs->next;
    root = merge(root, detach(pairs));
    pairs = rest;
  }
  return root;
}

}  // namespace

void WaitingQueue::push(Sequence& sequence) {
  sequence.child = sequence.next = sequence.prev = nullptr;
  root_ = merge(root_, &sequence);
  ++size_;
}

void WaitingQueue::remove(Sequence& sequence) {
  Sequence* children = merge_siblings(std::exchange(sequence.child, nullptr));
  if (&sequence == root_) {
    root_ = children;
  } else {
    Sequence*& link =
        sequence.prev->child == &sequence ? sequence.prev->child : sequence.prev->next;
    link = sequence.next;
    if (sequence.next != nullptr) sequence.next->prev = sequence.prev;
    detach(&sequence);
    root_ = merge(root_, children);
  }
  --size_;
}

}  // namespace foretoken
