#pragma once
#include <string>
#include <vector>

#include "device/dtype.h"
#include "kernels/live_rows.h"
#include "kernels/op_cost.h"

namespace foretoken {

// The packed weights of an op, if it has any, and their elements.
struct Weights {
  std::vector<const void*> handles = {};
  int64_t elements = 0;
};

// How an op is looked at; what is null is unknown of it. `args` is its argument block.
struct OpView {
  const char* name = nullptr;
  bool repeats = false;
  LiveRowsPlace (*place)(const void* args) = nullptr;
  OpCost (*cost)(const void* args, const LiveRows& live) = nullptr;
  std::string (*shape)(const void* args) = nullptr;
  Weights (*weights)(const void* args) = nullptr;
};

// What an op of the kind `counted` moves and computes: specialised for its arguments in the source
// of its contract, with functions place, cost and shape, and weights where it multiplies with any.
template <class Args>
struct Costs;

// The view of such an op, which that source returns from `name_view`.
template <class Args>
OpView counted_view() {
  OpView view;
  view.repeats = true;
  view.place = [](const void* args) { return Costs<Args>::place(*static_cast<const Args*>(args)); };
  view.cost = [](const void* args, const LiveRows& live) {
    return Costs<Args>::cost(*static_cast<const Args*>(args), live);
  };
  view.shape = [](const void* args) { return Costs<Args>::shape(*static_cast<const Args*>(args)); };
  if constexpr (requires(const Args& args) { Costs<Args>::weights(args); }) {
    view.weights = [](const void* args) {
      return Costs<Args>::weights(*static_cast<const Args*>(args));
    };
  }
  return view;
}

#define FT_OP(Name, name, kind) OpView name##_view();
#include "kernels/ops.def"
#undef FT_OP

inline constexpr int64_t kFloatBytes = sizeof(float);
inline constexpr int64_t kIdBytes = sizeof(int32_t);

inline int64_t live_count(const LiveRows& live, RowKind kind, int row_offset, int max_rows) {
  return live_rows_of(live.counts, kind, row_offset, max_rows);
}

inline int64_t size_of(DType dtype) { return static_cast<int64_t>(dtype_size(dtype)); }

// Of a packed weight of so many elements.
inline int64_t packed_bytes(int64_t elements, DType dtype, const LiveRows& live) {
  return live.weight_bytes > 0 ? live.weight_bytes : elements * size_of(dtype);
}

// Of the rows of logits that an op reads or writes once.
template <class Args>
int64_t logits_bytes(const Args& args, const LiveRows& live) {
  return live_count(live, RowKind::kLogits, args.row_offset, args.max_rows) * args.vocab *
         kFloatBytes;
}

// "30 x 20", of sizes.
inline std::string sizes_text(int64_t a, int64_t b) {
  return std::to_string(a) + " x " + std::to_string(b);
}

}  // namespace foretoken
