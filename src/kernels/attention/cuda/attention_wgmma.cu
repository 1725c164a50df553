#include "kernels/attention/cuda/attention_fa3.cuh"
#include "kernels/attention/cuda/attention_long_kernel.cuh"

namespace foretoken::cuda {

int attention_wgmma_blocks(const AttentionArgs& args) {
  const TileShape shape = tiles_for(args, kLongQueryRows);
  return head_chunks(args, shape) * ceil_div(args.max_rows, shape.tokens);
}

bool launch_attention_wgmma(const AttentionArgs& args, const LongCut& cut, cudaStream_t stream) {
  // FlashInfer's blocks do not share a tile, which few rows far behind want.
  if (args.family == AttentionFamily::kFlashInfer && cut.parts == 1 &&
      launch_attention_fa3(args, stream)) {
    return true;
  }
  if (args.kv.block_size % kLoadRun != 0) return false;
  if (args.kv.format == KvFormat::kFp8) return launch_attention_wgmma_codes(args, cut, stream);
  return launch_long_runs<false>(args, cut, stream);
}

}  // namespace foretoken::cuda
