#include "kernels/cpu/op_table.h"

#include "kernels/op.h"

namespace foretoken::cpu {

CpuKernels cpu_kernels() {
  CpuKernels kernels;
#define FT_OP(Name, name, kind) kernels.ops[static_cast<size_t>(Op::k##Name)] = name;
#include "kernels/ops.def"
#undef FT_OP
  kernels.stores_event[static_cast<size_t>(Op::kPublish)] = true;
  kernels.make_weight = make_weight;
  kernels.weight_slice_rows = weight_slice_rows;
  kernels.pack_weight = pack_weight;
  kernels.free_weight = free_weight;
  kernels.rows_of_weight = rows_of_weight;
  kernels.keeps_quantized = keeps_quantized;
  kernels.make_quantized_weight = make_quantized_weight;
  kernels.quantized_weight_bytes = quantized_weight_bytes;
  static_assert(static_cast<size_t>(Op::kCount) <= kMaxOps);
  return kernels;
}

}  // namespace foretoken::cpu
