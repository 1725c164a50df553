#pragma once
#include <cstdint>

namespace foretoken {

// The number of a range that has none.
inline constexpr uint64_t kNoRangeNumber = ~uint64_t{0};

// Opens and closes named ranges of the calling thread in a profiler outside of the process; `name`
// must live as long as the process. Both null: nobody looks.
struct ProfilerRanges {
  void (*begin)(const char* name, uint64_t number) = nullptr;
  void (*end)() = nullptr;
};

}  // namespace foretoken
