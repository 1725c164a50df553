#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// What an op moves and computes at least: each byte that it needs once, however often a kernel
// reads it.
struct OpCost {
  int64_t weight_bytes = 0;
  int64_t kv_bytes = 0;   // of keys and values
  int64_t row_bytes = 0;  // of rows that come in and go out
  int64_t flops = 0;      // a multiplication and an addition are two

  int64_t bytes() const { return weight_bytes + kv_bytes + row_bytes; }
  OpCost& operator+=(const OpCost& other);
  bool operator==(const OpCost&) const = default;
};

// The live rows of an op, as the device had them when it ran.
struct LiveRows {
  StepCounts counts{};
  std::vector<int32_t> positions = {};  // of each token row; attention only
  std::vector<int32_t> row_slot = {};
  int64_t weight_bytes = 0;  // of the op's quantised weights; 0: their elements have its type
};

// Where they lie; null where the op has none.
struct LiveRowsPlace {
  const StepCounts* counts = nullptr;
  const int32_t* positions = nullptr;
  const int32_t* row_slot = nullptr;
};

// `args` is the op's argument block in all of these.
const char* op_name(Op op);
LiveRowsPlace live_rows_place(Op op, const void* args);
// All zero for ops that handle plans and states: they are bound by latency.
OpCost op_cost(Op op, const void* args, const LiveRows& live);
// The handles of the packed weights that the op multiplies with.
std::vector<const void*> op_weights(Op op, const void* args);
// The sizes that tell ops of one name apart, "4096 x 14336" or "4096 x 14336, 4.5 bits"; or empty.
std::string op_shape(Op op, const void* args, int64_t weight_bytes = 0);
// Whether the op can run again and again without the rest of its step: it changes nothing that it
// reads but by adding to rows.
bool op_repeats(Op op);

}  // namespace foretoken
