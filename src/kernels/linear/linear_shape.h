#pragma once
#include <cstdint>

#include "base/host_device.h"

namespace foretoken {

inline constexpr int kMaxLinearKeyDim = 256;

// The heads of a linear attention: a matrix S [key_dim, value_dim] of each value head and sequence
// takes in a key and a value of each position and answers a query,
//   S = decay * S;  S += k (x) scale * (v - delta * S^T k);  out = S^T q,
// with `delta` 1 (the gated delta rule, Yang et al. 2024) or 0 (state-space duality, Dao and Gu
// 2024; lightning attention, Qin et al. 2024). Value head h reads query and key of head
// key_head_of(h). With `removes` rows carry two vectors of each value head's keys more, which say
// what leaves S (kernels/linear/wkv.h).
struct LinearShape {
  int32_t key_heads = 0;    // of queries and keys
  int32_t value_heads = 0;  // a multiple of them
  int32_t key_dim = 0;      // at most kMaxLinearKeyDim
  int32_t value_dim = 0;
  bool channel_decay =
      false;            // each of key_dim rows of S decays by itself (Kimi's delta attention)
  bool scaled = false;  // there are scales; else they are 1
  bool delta = false;
  bool tiled = false;  // value heads take turns among key heads, as in GGUF files of Qwen 3.5
  bool removes = false;

  FT_HD int32_t key_head_of(int32_t value_head) const {
    return tiled ? value_head % key_heads : value_head / (value_heads / key_heads);
  }
  FT_HD int32_t q_size() const { return key_heads * key_dim; }
  FT_HD int32_t v_size() const { return value_heads * value_dim; }
  FT_HD int32_t decay_size() const { return value_heads * (channel_decay ? key_dim : 1); }
  FT_HD int32_t scale_size() const { return scaled ? value_heads : 0; }
  // All removed keys, or all returned ones.
  FT_HD int32_t removal_size() const { return removes ? value_heads * key_dim : 0; }
  // Of a packed row: [queries | keys | values | decays | scales | removed keys | returned keys],
  // each by head.
  FT_HD int32_t k_offset() const { return q_size(); }
  FT_HD int32_t v_offset() const { return 2 * q_size(); }
  FT_HD int32_t decay_offset() const { return v_offset() + v_size(); }
  FT_HD int32_t scale_offset() const { return decay_offset() + decay_size(); }
  FT_HD int32_t removed_offset() const { return scale_offset() + scale_size(); }
  FT_HD int32_t returned_offset() const { return removed_offset() + removal_size(); }
  FT_HD int32_t row_size() const { return returned_offset() + removal_size(); }
  // What of it changes S: all but the queries.
  FT_HD int32_t update_size() const { return row_size() - q_size(); }
  // Floats of all S of a sequence.
  FT_HD int64_t state_size() const { return int64_t{value_heads} * key_dim * value_dim; }
};

}  // namespace foretoken
