#include "kernels/layer_tail.h"

#include "kernels/cpu/op_table.h"

namespace foretoken::cpu {

void layer_tail(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const LayerTailArgs*>(args);
  const LayerTailOps ops = layer_tail_ops(a);
  gemm(&ops.o, pool);
  rms_norm(&ops.mlp_norm, pool);
  gemm(&ops.gate_up, pool);
  gemm(&ops.down, pool);
  if (a.qkv == nullptr) return;
  rms_norm(&ops.next_norm, pool);
  gemm(&ops.qkv, pool);
}

}  // namespace foretoken::cpu
