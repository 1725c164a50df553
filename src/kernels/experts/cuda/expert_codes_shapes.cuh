#pragma once
#include <algorithm>

#include "kernels/experts/cuda/expert_codes.cuh"
#include "kernels/experts/cuda/expert_launch.cuh"
#include "kernels/experts/cuda/expert_stream.cuh"

namespace foretoken::cuda {

// As many stages as keep memory busy, as long as fits: each costs the thread that copies some
// hundred cycles.
template <class Form, int Entries, int Units, int StagesX, bool Tiled>
struct CodeShapeOf {
  using Cut = ExpertCut<CodeUnits<Form>, 2, 1, Entries, Units>;
  static constexpr int kStagesW =
      std::clamp((128 << 10) / (Cut::kGroups * Cut::kGroupBytes), 3, 12);
  using Shape = ExpertShape<Cut, kStagesW, StagesX, kStagesW, 1, Tiled>;
};

template <class Form>
bool launch_experts_of(const ExpertGemmArgs& args, const float* row_scales, cudaStream_t stream) {
  constexpr int kMaxUnits = Form::Codes::kCodeBytes == 512 ? 4 : 2;
  const ExpertScales scales{.of_rows = row_scales};
  const int mean = mean_entries(args);
  if (args.max_rows <= 8) {
    return launch_expert_shape<typename CodeShapeOf<Form, 8, kMaxUnits, 5, false>::Shape>(
        args, stream, scales);
  }
  if (mean <= 24) {
    return launch_expert_shape<typename CodeShapeOf<Form, 32, 2, 4, false>::Shape>(args, stream,
                                                                                   scales);
  }
  return launch_expert_shape<typename CodeShapeOf<Form, 64, 1, 5, true>::Shape>(args, stream,
                                                                                scales);
}

}  // namespace foretoken::cuda
