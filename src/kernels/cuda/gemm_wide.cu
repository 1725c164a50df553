#include "kernels/cuda/gemm_wide.cuh"

#include <array>
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

// Cycles of a product along 64 k, by what limits it: tensor cores, what a multiprocessor can take
// in, what the L2 cache gives, what memory gives.
template <class Epilogue>
double cost(const GemmArgs& args, const Cut<Epilogue>& cut) {
  const int tiles_x = ceil_div(args.max_rows, cut.rows * cut.cluster_x) * cut.cluster_x;
  const int tiles_w = ceil_div(args.n, cut.n * cut.cluster_w) * cut.cluster_w;
  const int blocks = tiles_x * tiles_w;
  const int waves = ceil_div(blocks, device_traits().num_sms / 4 * 4);
  const double at_once = static_cast<double>(blocks) / waves;
  const double products = cut.rows * cut.n / 32.0;
  const double taken = (cut.rows + cut.n) * 128.0 / 48;
  const double cached = at_once * 128 * (cut.rows / cut.cluster_w + cut.n / cut.cluster_x) / 4000;
  const double memory = at_once / tiles_x * cut.n * 128 / 2400;
  return waves * (std::max({products, taken, cached, memory}) + 60);
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
  return cuts<StoreOutput, WideShape<2, 1, 256, 1, 1>, WideShape<2, 1, 224, 1, 1>,
              WideShape<2, 1, 192, 2, 1>, WideShape<2, 1, 128, 2, 1>, WideShape<2, 1, 96, 1, 2>,
              WideShape<2, 1, 64, 1, 2>, WideShape<2, 1, 48, 1, 2>, WideShape<2, 1, 32, 1, 2>,
              WideShape<1, 1, 32, 1, 1>>();
}

// Pairs of matrices are never narrow.
auto cuts_of(const StoreGated&) {
  return cuts<StoreGated, WideShape<2, 1, 256, 1, 1>, WideShape<2, 1, 192, 2, 1>,
              WideShape<2, 1, 64, 1, 2>>();
}

}  // namespace

bool launch_gemm_wide(const GemmArgs& args, cudaStream_t stream) {
  return with_store(args, [&](const GemmArgs& all, auto& epilogue) {
    return launch_best(all, epilogue, stream, cuts_of(epilogue));
  });
}

bool launch_gemm_wide(const GemmArgs& args, KeepBest& best, cudaStream_t stream) {
  return launch_best(args, best, stream,
                     cuts<KeepBest, WideShape<2, 1, 256, 1, 1>, WideShape<2, 1, 192, 1, 1>,
                          WideShape<2, 1, 64, 1, 2>>());
}

}  // namespace foretoken::cuda
