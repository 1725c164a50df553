#pragma once
#include <pthread.h>

namespace foretoken {

// What the current thread does; tests look at it to see who allocates.
enum class ThreadRole : unsigned char { kOther, kEngine, kWorker, kPool, kOutput };

inline thread_local ThreadRole thread_role = ThreadRole::kOther;
// Above 0 while this thread may allocate: inside a library where nobody can avoid it, and while
// something is made once that stays.
inline thread_local int foreign_allocation_depth = 0;

// Called first by each thread of the engine; `name` (at most 15 characters) shows in debuggers.
inline void set_thread_role(ThreadRole role, const char* name) {
  thread_role = role;
  pthread_setname_np(pthread_self(), name);
}

struct ForeignAllocationScope {
  ForeignAllocationScope() { ++foreign_allocation_depth; }
  ~ForeignAllocationScope() { --foreign_allocation_depth; }
  ForeignAllocationScope(const ForeignAllocationScope&) = delete;
  ForeignAllocationScope& operator=(const ForeignAllocationScope&) = delete;
};

}  // namespace foretoken
