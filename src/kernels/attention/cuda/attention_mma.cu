#include "kernels/attention/cuda/attention_mma_kernels.cuh"

namespace foretoken::cuda {

int attention_short_tokens(const AttentionArgs& args) {
  return tiles_for(args, kGroupsForShort * kGroupRows).tokens;
}

void launch_attention_short(const AttentionArgs& args, AttentionSchedule schedule,
                            cudaStream_t stream) {
  if (args.kv.format == KvFormat::kFp8) return launch_attention_short_codes(args, schedule, stream);
  if (args.kv.format == KvFormat::kInt8) {
    return launch_attention_short_integers(args, schedule, stream);
  }
  for_head_dim(args.kv.head_dim,
               [&](auto dim) { launch_short<dim, KvFormat::kPlain>(args, schedule, stream); });
}

void launch_attention_long(const AttentionArgs& args, cudaStream_t stream) {
  if (args.kv.format == KvFormat::kFp8) return launch_attention_long_codes(args, stream);
  if (args.kv.format == KvFormat::kInt8) return launch_attention_long_integers(args, stream);
  for_head_dim(args.kv.head_dim,
               [&](auto dim) { launch_long<dim, KvFormat::kPlain>(args, stream); });
}

}  // namespace foretoken::cuda
