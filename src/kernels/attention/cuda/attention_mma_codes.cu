#include "kernels/attention/cuda/attention_mma_kernels.cuh"

namespace foretoken::cuda {

void launch_attention_short_codes(const AttentionArgs& args, AttentionSchedule schedule,
                                  cudaStream_t stream) {
  for_head_dim(args.kv.head_dim,
               [&](auto dim) { launch_short<dim, KvFormat::kFp8>(args, schedule, stream); });
}

void launch_attention_long_codes(const AttentionArgs& args, cudaStream_t stream) {
  for_head_dim(args.kv.head_dim, [&](auto dim) { launch_long<dim, KvFormat::kFp8>(args, stream); });
}

}  // namespace foretoken::cuda
