#include "kernels/comm/all_reduce_norm.h"

#include "kernels/cpu/op_table.h"

namespace foretoken::cpu {

void all_reduce_norm(const void* args, CpuPool& pool) {
  const AllReduceNormOps ops = all_reduce_norm_ops(*static_cast<const AllReduceNormArgs*>(args));
  all_reduce(&ops.sum, pool);
  rms_norm(&ops.norm, pool);
}

}  // namespace foretoken::cpu
