#include "kernels/gemm/cuda/gemm_wide.cuh"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

namespace foretoken::cuda {
namespace {

template <class Epilogue>
struct Cut {
  bool (*launch)(const GemmArgs& args, Epilogue& epilogue, cudaStream_t stream);
  int rows;
  int n;
  int tiles_w;
  int cluster_x;
  int cluster_w;
};

template <class Epilogue, class... Shapes>
constexpr std::array<Cut<Epilogue>, sizeof...(Shapes)> cuts() {
  // Each product of a row of tiles would have a column of keys of its own.
  static_assert(!std::is_same_v<Epilogue, KeepBest> || ((Shapes::kTilesW == 1) && ...));
  return {Cut<Epilogue>{launch_wide<Shapes, Epilogue>, Shapes::kRows, Shapes::kN, Shapes::kTilesW,
                        Shapes::kClusterX, Shapes::kClusterW}...};
}

__global__ void cluster_probe() {}

int count_resident(int cluster) {
  if (cluster == 1) return device_traits().num_sms;
  constexpr int kMoreThanHalf = 128 << 10;  // of a multiprocessor's shared memory
  cudaLaunchAttribute size;
  size.id = cudaLaunchAttributeClusterDimension;
  size.val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = cluster;
  config.blockDim = 128;
  config.dynamicSmemBytes = kMoreThanHalf;
  config.attrs = &size;
  config.numAttrs = 1;
  int count = 0;
  const bool known =
      cudaFuncSetAttribute(cluster_probe, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           kMoreThanHalf) == cudaSuccess &&
      cudaOccupancyMaxActiveClusters(&count, cluster_probe, &config) == cudaSuccess;
  return known ? count : 0;
}

// ns to take a product out of its registers.
double time_of_sum(const StoreOutput&, const GemmArgs& args) {
  if (args.out_dtype == DType::kBF16) return 0.047;
  return args.add == 0 ? 0.094 : 0.26;
}
double time_of_sum(const StoreGated&, const GemmArgs&) { return 0.11; }
double time_of_sum(const KeepBest&, const GemmArgs&) { return 0.094; }

// About how many ns the product takes on an H200. Four times add up for each 64 k of a tile: of the
// tensor cores, of what crosses shared memory (128 bytes a cycle, written once and read by every
// product of 64 rows), and of what the blocks at work fetch of x and of the weight. Tiles of the
// last wave end while others of theirs still run. Fitted to 43 tilings of 10 matrices at 96 to 4096
// rows, of which it chose the best but for 1.3 % in the mean; clusters of three and three
// warpgroups came later.
template <class Epilogue>
double cost(const GemmArgs& args, const Epilogue& epilogue, const Cut<Epilogue>& cut) {
  const int cluster = cut.cluster_x * cut.cluster_w;
  const int room = resident_clusters(cluster) * cluster;
  if (room == 0) return std::numeric_limits<double>::infinity();
  const int tiles_x = ceil_div(args.max_rows, cut.rows * cut.cluster_x) * cut.cluster_x;
  const int tiles_w = ceil_div(args.n, cut.n * cut.cluster_w) * cut.cluster_w;
  const double waves = static_cast<double>(tiles_x) * tiles_w / room;
  const double all_waves = std::max(1.0, 0.78 * std::ceil(waves) + 0.22 * waves);
  const double at_once = std::min(tiles_x * tiles_w, room);
  constexpr double kAtomColumn = kAtomK * 2;  // bytes of a row along an atom
  const double products = cut.rows * cut.n / 32.0;
  const double read = cut.rows / 64 * kAtomColumn * (64 * cut.tiles_w + cut.n);
  const double shared = (read + kAtomColumn * (cut.rows + cut.n)) / 128;
  const double from_x = at_once * cut.rows / cut.cluster_w * kAtomColumn;
  const double from_weight = at_once * cut.n / cut.cluster_x * kAtomColumn;
  const double step = 0.26 * products + 0.19 * shared + 2.2e-5 * from_x + 6.7e-5 * from_weight + 20;
  const double sums = time_of_sum(epilogue, args) * cut.rows * cut.n;
  return all_waves * (step * num_atoms(args.k) + sums + 1200);
}

template <class Epilogue, size_t Count>
bool launch_best(const GemmArgs& args, Epilogue& epilogue, cudaStream_t stream,
                 const std::array<Cut<Epilogue>, Count>& candidates) {
  if (!device_traits().wgmma || args.k % 8 != 0) return false;
  const Cut<Epilogue>* best = nullptr;
  double least = std::numeric_limits<double>::max();
  for (const Cut<Epilogue>& cut : candidates) {
    const double time = cost(args, epilogue, cut);
    if (time >= least) continue;
    least = time;
    best = &cut;
  }
  return best != nullptr && best->launch(args, epilogue, stream);
}

auto cuts_of(const StoreOutput&) {
  return cuts<StoreOutput, WideShape<2, 1, 256, 2, 1>, WideShape<2, 1, 256, 1, 2>,
              WideShape<1, 1, 168, 3, 1>, WideShape<1, 1, 120, 3, 1>, WideShape<2, 1, 224, 1, 1>,
              WideShape<2, 1, 192, 2, 1>, WideShape<2, 1, 144, 2, 1>, WideShape<2, 1, 128, 2, 1>,
              WideShape<2, 1, 96, 2, 1>, WideShape<1, 2, 96, 2, 1>, WideShape<1, 1, 224, 4, 1>,
              WideShape<1, 1, 192, 2, 1>, WideShape<1, 1, 160, 4, 1>, WideShape<1, 1, 160, 2, 1>,
              WideShape<1, 1, 128, 2, 1>, WideShape<1, 1, 96, 2, 1>, WideShape<1, 1, 64, 2, 1>,
              WideShape<1, 1, 48, 2, 1>>();
}

// Pairs of matrices are never narrow.
auto cuts_of(const StoreGated&) {
  return cuts<StoreGated, WideShape<3, 1, 224, 1, 1>, WideShape<2, 1, 256, 2, 1>,
              WideShape<2, 1, 224, 2, 1>, WideShape<2, 1, 224, 1, 2>, WideShape<2, 1, 224, 1, 1>,
              WideShape<2, 1, 128, 2, 1>, WideShape<1, 1, 128, 2, 1>>();
}

// Narrow tiles would keep too many columns of keys.
auto cuts_of(const KeepBest&) {
  return cuts<KeepBest, WideShape<2, 1, 256, 2, 1>, WideShape<2, 1, 256, 1, 2>,
              WideShape<2, 1, 224, 1, 1>, WideShape<2, 1, 64, 1, 2>>();
}

}  // namespace

int resident_clusters(int cluster) {
  static const std::array<int, 4> counts{count_resident(1), count_resident(2), count_resident(3),
                                         count_resident(4)};
  return counts[cluster - 1];
}

// With the largest tiles, which many rows take.
int64_t rows_of_a_wave(int64_t num_outputs) {
  constexpr int kRows = 128;
  constexpr int kOutputs = 256;
  if (!device_traits().wgmma) return 0;
  const auto across = static_cast<int>((num_outputs + kOutputs - 1) / kOutputs);
  return std::max(device_traits().num_sms / std::max(across, 1), 1) * kRows;
}

bool launch_gemm_wide(const GemmArgs& args, cudaStream_t stream) {
  return with_store(args, [&](const GemmArgs& all, auto& epilogue) {
    return launch_best(all, epilogue, stream, cuts_of(epilogue));
  });
}

bool launch_gemm_wide(const GemmArgs& args, KeepBest& best, cudaStream_t stream) {
  return launch_best(args, best, stream, cuts_of(best));
}

}  // namespace foretoken::cuda
