#include "kernels/cuda/gemm_wide.cuh"

#include <array>
#include <cmath>
#include <limits>

namespace foretoken::cuda {
namespace {

template <class Epilogue>
struct Cut {
  bool (*launch)(const GemmArgs& args, Epilogue& epilogue, cudaStream_t stream);
  int rows;
  int n;
  int cluster_x;
  int cluster_w;
};

template <class Epilogue, class... Shapes>
constexpr std::array<Cut<Epilogue>, sizeof...(Shapes)> cuts() {
  return {Cut<Epilogue>{launch_wide<Shapes, Epilogue>, Shapes::kRows, Shapes::kN, Shapes::kClusterX,
                        Shapes::kClusterW}...};
}

// About how many cycles the product takes on an H200. The times of the tensor cores, of the copies
// into a multiprocessor and of what the L2 cache gives add up, as the times of all tiles below at
// 128 to 2048 rows show; tiles of the last wave end while others of theirs still run.
template <class Epilogue>
double cost(const GemmArgs& args, const Cut<Epilogue>& cut) {
  const int tiles_x = ceil_div(args.max_rows, cut.rows * cut.cluster_x) * cut.cluster_x;
  const int tiles_w = ceil_div(args.n, cut.n * cut.cluster_w) * cut.cluster_w;
  const int cluster = cut.cluster_x * cut.cluster_w;
  // Clusters of 4 do not fill every group of multiprocessors.
  const int room = device_traits().num_sms * (cluster > 2 ? 10 : 11) / 11 / cluster * cluster;
  const double waves = static_cast<double>(tiles_x) * tiles_w / room;
  const double all_waves = std::max(1.0, 0.765 * std::ceil(waves) + 0.235 * waves);
  const double at_once = std::min(tiles_x * tiles_w, room);
  constexpr double kAtomColumn = kAtomK * 2;  // bytes of a row along an atom
  const double products = cut.rows * cut.n / 16.9;
  const double copied = (cut.rows + cut.n) * kAtomColumn / 24.8;
  const double from_x = at_once * cut.rows / cut.cluster_w * kAtomColumn / 12000;
  const double from_weight = at_once * cut.n / cut.cluster_x * kAtomColumn / 2680;
  const double step = products + copied + from_x + from_weight;
  return all_waves * (step * num_atoms(args.k) + 0.15 * cut.rows * cut.n);
}

template <class Epilogue, size_t Count>
bool launch_best(const GemmArgs& args, Epilogue& epilogue, cudaStream_t stream,
                 const std::array<Cut<Epilogue>, Count>& candidates) {
  if (!device_traits().wgmma || args.k % 8 != 0) return false;
  const Cut<Epilogue>* best = nullptr;
  double least = std::numeric_limits<double>::max();
  for (const Cut<Epilogue>& cut : candidates) {
    const double cycles = cost(args, cut);
    if (cycles >= least) continue;
    least = cycles;
    best = &cut;
  }
  return best->launch(args, epilogue, stream);
}

auto cuts_of(const StoreOutput&) {
  return cuts<StoreOutput, WideShape<2, 1, 256, 2, 1>, WideShape<2, 1, 224, 2, 1>,
              WideShape<2, 1, 224, 1, 1>, WideShape<2, 1, 192, 2, 1>, WideShape<2, 1, 128, 2, 1>,
              WideShape<2, 1, 128, 1, 2>, WideShape<2, 1, 112, 2, 2>, WideShape<2, 1, 96, 1, 2>,
              WideShape<2, 1, 64, 1, 2>, WideShape<2, 1, 48, 1, 2>, WideShape<1, 1, 96, 2, 1>,
              WideShape<1, 1, 80, 2, 2>, WideShape<1, 1, 64, 2, 1>, WideShape<1, 1, 48, 2, 1>,
              WideShape<1, 1, 32, 1, 1>>();
}

// Pairs of matrices are never narrow.
auto cuts_of(const StoreGated&) {
  return cuts<StoreGated, WideShape<2, 1, 256, 2, 1>, WideShape<2, 1, 224, 2, 1>,
              WideShape<2, 1, 224, 1, 1>, WideShape<2, 1, 192, 2, 1>, WideShape<2, 1, 96, 1, 2>,
              WideShape<1, 1, 64, 2, 1>>();
}

// Narrow tiles would keep too many columns of keys.
auto cuts_of(const KeepBest&) {
  return cuts<KeepBest, WideShape<2, 1, 256, 2, 1>, WideShape<2, 1, 224, 1, 1>,
              WideShape<2, 1, 64, 1, 2>>();
}

}  // namespace

bool launch_gemm_wide(const GemmArgs& args, cudaStream_t stream) {
  return with_store(args, [&](const GemmArgs& all, auto& epilogue) {
    return launch_best(all, epilogue, stream, cuts_of(epilogue));
  });
}

bool launch_gemm_wide(const GemmArgs& args, KeepBest& best, cudaStream_t stream) {
  return launch_best(args, best, stream, cuts_of(best));
}

}  // namespace foretoken::cuda
