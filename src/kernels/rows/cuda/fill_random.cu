#include "kernels/rows/fill_random.h"

#include <algorithm>

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/random_weight.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 4096;

template <class T>
__global__ void fill_random_kernel(FillRandomArgs args) {
  wait_for_previous();
  let_next_start();
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < args.count; i += step) {
    const float value = random_weight(args.seed, static_cast<uint64_t>(args.first + i), args.scale);
    static_cast<T*>(args.to)[i] = from_float<T>(value);
  }
}

}  // namespace

void launch_fill_random(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<FillRandomArgs>(packed);
  const auto blocks =
      static_cast<int>(std::min((args.count + kThreads - 1) / kThreads, kMaxBlocks));
  const auto kernel =
      args.dtype == DType::kBF16 ? fill_random_kernel<__nv_bfloat16> : fill_random_kernel<float>;
  launch_kernel(kernel, blocks, kThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
