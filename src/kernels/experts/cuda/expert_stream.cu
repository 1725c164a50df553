#include "kernels/experts/cuda/expert_stream.cuh"

#include "kernels/experts/cuda/expert_launch.cuh"

namespace foretoken::cuda {
namespace {

template <int Warpgroups, int Entries, int Units, int StagesW, int StagesX, int InFlight>
using Streamed = ExpertShape<ExpertCut<Bf16Units, Warpgroups, 1, Entries, Units>, StagesW, StagesX,
                             InFlight, Warpgroups == 1 ? 2 : 1, false>;

}  // namespace

// Tiles that hold the entries of most experts, so that most weights are read once. Narrow ones
// store sooner: on an H100 the 16B's products take 258 and 134 us in tiles of 32 with 64 rows, 271
// and 145 in tiles of 64.
bool launch_experts_streamed(const ExpertGemmArgs& args, cudaStream_t stream) {
  if (!streams_experts(args)) return false;
  if (args.max_rows <= 8) return launch_expert_shape<Streamed<1, 8, 2, 5, 5, 5>>(args, stream);
  if (args.max_rows <= 16) return launch_expert_shape<Streamed<2, 16, 2, 5, 5, 3>>(args, stream);
  constexpr int kMaxMean = 24;
  if (args.max_rows <= 32 || mean_entries(args) <= kMaxMean) {
    return launch_expert_shape<Streamed<2, 32, 2, 5, 4, 3>>(args, stream);
  }
  return launch_expert_shape<Streamed<4, 64, 1, 5, 5, 5>>(args, stream);
}

}  // namespace foretoken::cuda
