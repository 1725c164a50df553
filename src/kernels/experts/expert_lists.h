#pragma once
#include <cstdint>

namespace foretoken {

inline constexpr int kMaxExperts = 1024;
inline constexpr int kMaxTopExperts = 32;

// Which rows of a step each expert of this rank computes, in device memory. An entry is a row and
// one of its choices, row * top_k + slot; those of expert e are entries[begins[e]] to
// entries[begins[e + 1]], ascending. Choices of other ranks' experts are in no list.
struct ExpertLists {
  int32_t* begins;   // [count + 1]
  int32_t* entries;  // [max_rows * top_k]
  int32_t count;     // experts of this rank
  int32_t top_k;
  int32_t num_experts = 0;  // that rows choose among; 0: `count`

  int32_t all_experts() const { return num_experts > 0 ? num_experts : count; }
};

}  // namespace foretoken
