#include "kernels/experts/cuda/expert_stream.cuh"

#include "kernels/experts/cuda/expert_launch.cuh"

namespace foretoken::cuda {
namespace {

template <int Warpgroups, int Entries, int Units, int StagesW, int StagesX, int InFlight>
using Streamed = ExpertShape<ExpertCut<Bf16Units, Warpgroups, 1, Entries, Units>, StagesW, StagesX,
                             InFlight, Warpgroups == 1 ? 2 : 1, false>;

}  // namespace

// No expert has more entries than the step has rows: each weight is read once, however many of the
// rows choose the same experts.
bool launch_experts_streamed(const ExpertGemmArgs& args, cudaStream_t stream) {
  if (!streams_experts(args)) return false;
  if (args.max_rows <= 8) return launch_expert_shape<Streamed<1, 8, 2, 5, 5, 5>>(args, stream);
  if (args.max_rows <= 16) return launch_expert_shape<Streamed<2, 16, 2, 5, 5, 3>>(args, stream);
  if (args.max_rows <= 32) return launch_expert_shape<Streamed<2, 32, 2, 5, 4, 3>>(args, stream);
  return launch_expert_shape<Streamed<4, 64, 1, 5, 5, 5>>(args, stream);
}

}  // namespace foretoken::cuda
