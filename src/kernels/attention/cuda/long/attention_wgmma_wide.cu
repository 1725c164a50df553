#include "kernels/attention/cuda/long/attention_long_kernel.cuh"

namespace foretoken::cuda {

bool launch_attention_wgmma_wide(const AttentionArgs& args, const LongCut& cut,
                                 cudaStream_t stream) {
  return launch_long_runs<false, true>(args, cut, stream);
}

}  // namespace foretoken::cuda
