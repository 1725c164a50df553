#include "kernels/experts/cuda/expert_launch.cuh"
#include "kernels/experts/cuda/expert_stream.cuh"

namespace foretoken::cuda {
namespace {

template <int Tiles, int Entries, int StagesW, int StagesX>
using Wide =
    ExpertShape<ExpertCut<Bf16Units, 2, Tiles, Entries, 1>, StagesW, StagesX, StagesW, 1, true>;

}  // namespace

// Many entries an expert: tiles are as wide as entries fill them.
bool launch_experts_tiled(const ExpertGemmArgs& args, cudaStream_t stream) {
  if (!takes_wgmma(args)) return false;
  const int mean = mean_entries(args);
  const int tiles = ceil_div(mean, 120);
  if (mean <= tiles * 88) return launch_expert_shape<Wide<2, 96, 5, 5>>(args, stream);
  return launch_expert_shape<Wide<2, 128, 4, 4>>(args, stream);
}

}  // namespace foretoken::cuda
