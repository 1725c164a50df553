#pragma once
#include <cstdint>

namespace foretoken {

// Numbers of the ops in a device's op table, as kernels/ops.def lists them. An op's argument block
// names its number as `kOp`. Arguments are plain pointers to device memory and sizes; they are
// baked into graphs, so whatever changes from step to step is read from device memory.
enum class Op : uint16_t {
#define FT_OP(Name, name, kind) k##Name,
#include "kernels/ops.def"
#undef FT_OP
  kCount,
};

}  // namespace foretoken
