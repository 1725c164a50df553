#pragma once
#include <algorithm>

#include "kernels/experts/cuda/expert_codes.cuh"
#include "kernels/experts/cuda/expert_launch.cuh"
#include "kernels/experts/cuda/expert_stream.cuh"

namespace foretoken::cuda {

// As many stages as keep memory busy; those of four bits are half as large.
template <class Form, int Entries, int StagesX, bool Tiled>
struct CodeShapeOf {
  using Cut = ExpertCut<CodeUnits<Form>, 2, 1, Entries, 1>;
  static constexpr int kStagesW =
      std::clamp((112 << 10) / (Cut::kGroups * kUnitBytes<Form>), 4, 12);
  using Shape = ExpertShape<Cut, kStagesW, StagesX, kStagesW, 1, Tiled>;
};

template <class Form>
bool launch_experts_of(const ExpertGemmArgs& args, const float* row_scales, cudaStream_t stream) {
  const int mean = mean_entries(args);
  if (args.max_rows <= 8) {
    return launch_expert_shape<typename CodeShapeOf<Form, 8, 8, false>::Shape>(args, stream,
                                                                               row_scales);
  }
  if (mean <= 12) {
    return launch_expert_shape<typename CodeShapeOf<Form, 32, 6, false>::Shape>(args, stream,
                                                                                row_scales);
  }
  return launch_expert_shape<typename CodeShapeOf<Form, 64, 5, true>::Shape>(args, stream,
                                                                             row_scales);
}

}  // namespace foretoken::cuda
