#pragma once
#include <thread>

namespace foretoken {

// One round of a spin loop; gives the core away every 64 rounds.
inline void spin_pause(int round) {
  if ((round & 63) == 63) {
    std::this_thread::yield();
  } else {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
}

}  // namespace foretoken
