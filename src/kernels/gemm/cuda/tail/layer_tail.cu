#include "kernels/gemm/layer_tail.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>

#include "kernels/cuda/launchers.h"
#include "kernels/gemm/cuda/dequant_weight.cuh"
#include "kernels/gemm/cuda/tail/layer_tail_reader.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kMaxRows = kGroupRows;
// Weights that fit into the rings of all blocks do not stream: what lies between such products
// costs less as ops of their own.
constexpr int64_t kLeastBytes = int64_t{26} << 20;

__global__ void __launch_bounds__(kTailThreads, 1)
    layer_tail_kernel(const __grid_constant__ LayerTailArgs args,
                      const __grid_constant__ TailPlan plan,
                      const __grid_constant__ TailMaps maps) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) uint8_t shared[];
  __shared__ float warp_sums[TailNorm::kMaxTurns * kTailReaders];
  const TailMemory memory(shared, args.max_rows);
  const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x / 32), 0);
  let_next_start();
  if (warp == kTailReaders) {
    if (elect_lane()) memory.init();
    __syncwarp();
    arrive_at_tail_start();
    TailWeights{args, plan, memory, evict_first_policy()}.run();
    return;
  }
  sync_tail_start();
  if (warp < kTailReaders) {
    TailReader{args, plan, memory, warp_sums}.run();
  } else {
    TailRows{args, plan, maps, memory}.run();
  }
#endif
}

TailPlan make_plan(const LayerTailArgs& args) {
  const auto product = [](const void* weight, int64_t n, int64_t k) {
    return TailProduct{static_cast<const uint8_t*>(weight), ceil_div(n, kGroupRows), num_atoms(k)};
  };
  return {
      {product(args.o, args.hidden, args.x_size),
       product(args.gate_up, packed_rows(2 * int64_t{args.inner}, WeightOrder::kGateUp),
               args.hidden),
       product(args.down, args.hidden, args.inner), product(args.qkv, args.qkv_size, args.hidden)},
      args.qkv != nullptr ? 4 : 3};
}

bool has_quantized(const LayerTailArgs& args) {
  const void* weights[] = {args.o, args.gate_up, args.down, args.qkv};
  return std::any_of(std::begin(weights), std::end(weights),
                     [](const void* weight) { return quantized_matrix(weight) != nullptr; });
}

bool takes(const LayerTailArgs& args, const TailPlan& plan) {
  if (has_quantized(args)) return false;
  if (!device_traits().wgmma || args.dtype != DType::kBF16 || args.max_rows > kMaxRows) {
    return false;
  }
  if (args.hidden % kAtomK != 0 || args.x_size % kAtomK != 0 || args.inner % kAtomK != 0 ||
      args.hidden > TailNorm::kMaxHidden) {
    return false;
  }
  int64_t atoms = 0;
  for (int p = 0; p < plan.count; ++p) {
    atoms += int64_t{plan.products[p].groups} * plan.products[p].atoms;
  }
  return atoms * kAtomBytes >= kLeastBytes;
}

bool make_maps(TailMaps& maps, const LayerTailArgs& args) {
  const auto make = [&](CUtensorMap& map, const void* rows, int columns) {
    return make_row_map(map, rows, args.max_rows, columns, args.max_rows, kTailSlotAtoms);
  };
  return make(maps.attended, args.x, args.x_size) && make(maps.normed, args.normed, args.hidden) &&
         make(maps.gated, args.gated, args.inner);
}

// All blocks of a tail must get to be resident, which two that run at the same time could keep each
// other from. So only the first stream of a device has them, where no other process runs beside it.
// Others launch the ops one by one. Cooperative launches are no way out: with those of one stream
// beside plain ones of another, a test did not end.
constexpr int kMaxDevices = 64;
std::array<std::atomic<cudaStream_t>, kMaxDevices> tail_streams;

bool may_have_tails(cudaStream_t stream) {
  int ordinal = 0;
  if (cudaGetDevice(&ordinal) != cudaSuccess || ordinal >= kMaxDevices) return false;
  if (device_traits().mps) return false;
  cudaStream_t found = nullptr;
  auto& first = tail_streams[static_cast<size_t>(ordinal)];
  return first.compare_exchange_strong(found, stream) || found == stream;
}

bool launch(const LayerTailArgs& args, const TailPlan& plan, cudaStream_t stream) {
  constexpr int kBytes = TailMemory::kBytes;
  const auto kernel = layer_tail_kernel;
  TailMaps maps;
  const cudaError_t raised =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (raised != cudaSuccess || !make_maps(maps, args)) return false;
  launch_kernel(kernel, device_traits().num_sms, kTailThreads, kBytes, stream, args, plan, maps);
  return true;
}

void launch_op(const GemmArgs& op, cudaStream_t stream) { launch_gemm(&op, stream); }
void launch_op(const RmsNormArgs& op, cudaStream_t stream) { launch_rms_norm(&op, stream); }

}  // namespace

void forget_tails(cudaStream_t stream) {
  for (auto& first : tail_streams) {
    cudaStream_t found = stream;
    first.compare_exchange_strong(found, nullptr);
  }
}

void launch_layer_tail(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<LayerTailArgs>(packed);
  const TailPlan plan = make_plan(args);
  if (takes(args, plan) && may_have_tails(stream) && launch(args, plan, stream)) return;
  for_each_tail_op(args, [stream](const auto& op) { launch_op(op, stream); });
}

}  // namespace foretoken::cuda
