#pragma once
#include <memory>

#include "base/thread_role.h"

namespace foretoken::cpu {

// The calling thread's own Scratch, made when it is first asked for and kept until the thread ends.
// Throws std::bad_alloc.
template <class Scratch>
Scratch& thread_scratch() {
  thread_local std::unique_ptr<Scratch> scratch;
  if (scratch == nullptr) {
    const ForeignAllocationScope once;
    scratch.reset(new Scratch);
  }
  return *scratch;
}

}  // namespace foretoken::cpu
