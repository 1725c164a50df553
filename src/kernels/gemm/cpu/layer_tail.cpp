#include "kernels/gemm/layer_tail.h"

#include "kernels/cpu/op_table.h"

namespace foretoken::cpu {
namespace {

void run(const GemmArgs& op, CpuPool& pool) { gemm(&op, pool); }
void run(const RmsNormArgs& op, CpuPool& pool) { rms_norm(&op, pool); }

}  // namespace

void layer_tail(const void* args, CpuPool& pool) {
  for_each_tail_op(*static_cast<const LayerTailArgs*>(args),
                   [&pool](const auto& op) { run(op, pool); });
}

}  // namespace foretoken::cpu
