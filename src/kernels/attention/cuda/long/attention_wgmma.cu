#include "kernels/attention/cuda/attention_fa3.cuh"
#include "kernels/attention/cuda/long/attention_long_kernel.cuh"

namespace foretoken::cuda {
namespace {

// Whether a third warpgroup pays: a tile of 192 query rows takes 15 / 11 of the time of one of 128,
// where its rows see much, and the last round of tiles may leave multiprocessors idle.
bool takes_wide(const AttentionArgs& args, const LongCut& cut) {
  constexpr int kWideTime = 15, kTime = 11;
  constexpr int kLeastReach = 4096;
  if (args.runs != RunLengths::kFar || cut.parts > 1) return false;
  for (const int reach : {args.window, args.chunk}) {
    if (reach > 0 && reach < kLeastReach) return false;
  }
  const int sms = device_traits().num_sms;
  const int wide_rounds = ceil_div(long_tiles(args, LongTeam<true>::kQueryRows), sms);
  const int rounds = ceil_div(long_tiles(args, LongTeam<false>::kQueryRows), sms);
  return wide_rounds * kWideTime < rounds * kTime;
}

}  // namespace

int attention_wgmma_blocks(const AttentionArgs& args) {
  return long_tiles(args, LongTeam<false>::kQueryRows);
}

bool launch_attention_wgmma(const AttentionArgs& args, const LongCut& cut, cudaStream_t stream) {
  // FlashInfer's blocks do not share a tile, which few rows far behind want.
  if (args.family == AttentionFamily::kFlashInfer && cut.parts == 1 &&
      launch_attention_fa3(args, stream)) {
    return true;
  }
  if (args.kv.block_size % kLoadRun != 0 || args.kv.format == KvFormat::kInt8) return false;
  if (args.kv.format == KvFormat::kFp8) return launch_attention_wgmma_codes(args, cut, stream);
  if (takes_wide(args, cut)) return launch_attention_wgmma_wide(args, cut, stream);
  return launch_long_runs<false, false>(args, cut, stream);
}

}  // namespace foretoken::cuda
