#include "kernels/op_cost.h"

#include <array>

#include "base/check.h"
#include "kernels/op_view.h"

namespace foretoken {
namespace {

using OpViews = std::array<OpView, static_cast<size_t>(Op::kCount)>;

OpView named(const char* name, OpView view) {
  view.name = name;
  return view;
}

#define FT_VIEW_once(name) named(#name, {})
#define FT_VIEW_repeats(name) named(#name, {.repeats = true})
#define FT_VIEW_counted(name) named(#name, name##_view())
#define FT_OP(Name, name, kind) FT_VIEW_##kind(name),
const OpView& view_of(Op op) {
  static const OpViews views = {{
#include "kernels/ops.def"
  }};
  FT_CHECK(op < Op::kCount);
  return views[static_cast<size_t>(op)];
}
#undef FT_OP

}  // namespace

OpCost& OpCost::operator+=(const OpCost& other) {
  weight_bytes += other.weight_bytes;
  kv_bytes += other.kv_bytes;
  row_bytes += other.row_bytes;
  flops += other.flops;
  return *this;
}

const char* op_name(Op op) { return view_of(op).name; }

LiveRowsPlace live_rows_place(Op op, const void* args) {
  const OpView& view = view_of(op);
  return view.place != nullptr ? view.place(args) : LiveRowsPlace{};
}

OpCost op_cost(Op op, const void* args, const LiveRows& live) {
  const OpView& view = view_of(op);
  return view.cost != nullptr ? view.cost(args, live) : OpCost{};
}

std::vector<const void*> op_weights(Op op, const void* args) {
  const OpView& view = view_of(op);
  return view.weights != nullptr ? view.weights(args).handles : std::vector<const void*>();
}

std::string op_shape(Op op, const void* args, int64_t weight_bytes) {
  const OpView& view = view_of(op);
  if (view.shape == nullptr) return {};
  const std::string shape = view.shape(args);
  if (weight_bytes == 0) return shape;
  const int64_t elements = view.weights(args).elements;
  const int64_t tenths = (80 * weight_bytes + elements / 2) / elements;
  return shape + ", " + std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " bits";
}

bool op_repeats(Op op) { return view_of(op).repeats; }

}  // namespace foretoken
