#pragma once
#include <array>
#include <cmath>

#include "kernels/gemm/cuda/fp8/gemm_fp8_few.cuh"
#include "kernels/gemm/cuda/fp8/gemm_fp8_wide.cuh"

// Which kernel and shape a product of rounded rows takes.
namespace foretoken::cuda {

// A tiling of many rows, and what a tile takes beside one of 128 rows of the weight, as measured on
// an H200.
template <class Epilogue>
struct Fp8Cut {
  bool (*launch)(const GemmArgs& args, const QuantizedMatrix& matrix, Epilogue& epilogue,
                 cudaStream_t stream);
  int n;
  int cluster;
  double time;
  int min_rows;
};

template <bool ByUnit, class Epilogue>
constexpr auto fp8_cuts() {
  constexpr int kClusterX = ByUnit ? 1 : 2;  // of the widest
  return std::array<Fp8Cut<Epilogue>, 3>{
      {{launch_fp8_wide<Fp8WideShape<2, 64, 1, 1, ByUnit>, Epilogue>, 64, 1, 0.68, 0},
       {launch_fp8_wide<Fp8WideShape<2, 128, 1, 1, ByUnit>, Epilogue>, 128, 1, 1, 0},
       {launch_fp8_wide<Fp8WideShape<2, 192, kClusterX, 1, ByUnit>, Epilogue>, 192, kClusterX,
        ByUnit ? 1.25 : 1.4, ByUnit ? 0 : 4096}}};
}

template <bool ByUnit, class Epilogue>
bool launch_fp8_many(const GemmArgs& args, const QuantizedMatrix& matrix, Epilogue& epilogue,
                     cudaStream_t stream) {
  static constexpr auto kCuts = fp8_cuts<ByUnit, Epilogue>();
  constexpr int kRows = 128;
  const Fp8Cut<Epilogue>* best = nullptr;
  double least = 0;
  for (const Fp8Cut<Epilogue>& cut : kCuts) {
    const int room = resident_clusters(cut.cluster) * cut.cluster;
    if (room == 0 || args.max_rows < cut.min_rows) continue;
    const int tiles = ceil_div(args.max_rows, kRows) * ceil_div(args.n, cut.n);
    const double waves = static_cast<double>(tiles) / room;
    // Tiles of the last wave end while others of theirs still run.
    const double time = (0.78 * std::ceil(waves) + 0.22 * waves) * cut.time;
    if (best != nullptr && time >= least) continue;
    least = time;
    best = &cut;
  }
  return best != nullptr && best->launch(args, matrix, epilogue, stream);
}

// GemmArgs of a gated product count the rows of the packed matrix in n. ByUnit: the weight has
// scales of units.
template <bool ByUnit, class Epilogue>
void launch_fp8(const GemmArgs& args, const QuantizedMatrix& matrix, Epilogue& epilogue,
                cudaStream_t stream) {
  // Whether blocks of 64 rows of the weight have a multiprocessor each.
  const bool narrow = ceil_div(args.n, 64) <= device_traits().num_sms;
  const auto few = [&]<int Rows>() {
    return narrow ? launch_fp8_few<Fp8FewShape<Rows, 1, ByUnit>>(args, matrix, epilogue, stream)
                  : launch_fp8_few<Fp8FewShape<Rows, 2, ByUnit>>(args, matrix, epilogue, stream);
  };
  if (args.max_rows <= 8 && few.template operator()<8>()) return;
  if (args.max_rows <= 16 && few.template operator()<16>()) return;
  if (args.max_rows <= 32 && few.template operator()<32>()) return;
  if (args.max_rows <= 64 && few.template operator()<64>()) return;
  launch_fp8_many<ByUnit>(args, matrix, epilogue, stream);
}

#define FT_FP8_SCALES(ByUnit)                                                             \
  template void launch_fp8<ByUnit>(const GemmArgs&, const QuantizedMatrix&, StoreOutput&, \
                                   cudaStream_t);                                         \
  template void launch_fp8<ByUnit>(const GemmArgs&, const QuantizedMatrix&, StoreGated&,  \
                                   cudaStream_t);

}  // namespace foretoken::cuda
