#pragma once
#include <system_error>

#include "base/result.h"

namespace foretoken {

// Of what the constructor of a std::thread threw: whether the system has no thread left.
inline bool is_thread_limit(const std::system_error& error) {
  return error.code() == std::errc::resource_unavailable_try_again;
}

inline Status thread_limit_reached() {
  return resource_exhausted(
      "the system starts no further thread; raise the limit of processes (ulimit -u), or a "
      "container's --pids-limit");
}

// What `start` returns, or thread_limit_reached() where it threw that. The system's other errors
// pass.
template <class Start>
auto start_threads(Start&& start) -> decltype(start()) {
  try {
    return start();
  } catch (const std::system_error& error) {
    if (!is_thread_limit(error)) throw;
    return thread_limit_reached();
  }
}

}  // namespace foretoken
