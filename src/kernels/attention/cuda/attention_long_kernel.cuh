#pragma once
#include "kernels/attention/cuda/attention_long.cuh"
#include "kernels/attention/cuda/attention_long_codes.cuh"
#include "kernels/attention/cuda/attention_long_loader.cuh"
#include "kernels/attention/cuda/attention_long_reader.cuh"

// The kernel of the attention of long runs. Codes: keys and values are those of KvFormat::kFp8;
// attention_wgmma_codes.cu has these, attention_wgmma.cu the others.
namespace foretoken::cuda {
namespace {

constexpr int kFewRounds = 3;

template <int Dim, bool Capped, bool Codes>
__global__ void __launch_bounds__(kLongThreads, 1)
    attention_long_kernel(const __grid_constant__ AttentionArgs args, TileShape shape,
                          const __grid_constant__ LongCut cut,
                          const __grid_constant__ KvMaps maps) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(128) char memory[];
  __shared__ LongState state;
  using S = LongShape<Dim>;
  char* ring_memory = memory + (1024 - shared_address(memory) % 1024) % 1024;
  char* queries = ring_memory + kLongStages * S::kUnitBytes;
  using Widener = LongWidener<Dim>;
  if (threadIdx.x == 0) {
    state.init(Codes ? Widener::kWarps : kQueryLoaders, Codes ? Widener::kWarps : 1);
  }
  if (!cut.overlaps) wait_for_previous();
  let_next_start();
  __syncthreads();
  const int warp = threadIdx.x / 32;
  if (warp < kLongReaders) {
    raise_registers<216>();
    uint32_t barriers = shared_address(&state);
    asm volatile("" : "+r"(barriers));  // or it is formed anew at every use
    LongReader<Dim, Capped, Codes>{args,
                                   cut,
                                   scoring_of(args),
                                   shared_address(ring_memory),
                                   shared_address(queries) + uniform(warp / 4) * 64 * 128,
                                   state,
                                   barriers,
                                   threadIdx.x % 32 == 0}
        .run();
  } else {
    lower_registers<72>();
    if constexpr (Codes) {
      const int lane = static_cast<int>(threadIdx.x) % 32;
      Widener widener{args, ring_memory, queries, state, warp - kLongReaders, lane};
      if (warp > kLongReaders) {
        widener.run(nullptr);
      } else {
        LongWalk walk(args, cut, shape);
        asm volatile("" ::"l"(&walk) : "memory");  // it stays in memory, registers are for codes
        widener.run(&walk);
      }
    } else if (warp == kLongReaders) {
      LongKvLoader<Dim>{args, maps.k, ring_memory, state}.run_keys(LongWalk(args, cut, shape));
    } else if (warp == kLongReaders + 1) {
      LongKvLoader<Dim>{args, maps.v, ring_memory, state}.run_values();
    } else {
      const int thread = static_cast<int>(threadIdx.x) - (kLongReaders + 2) * 32;
      LongQueryLoader<Dim>{args, queries, state, thread}.run();
    }
    // Whoever waits for this kernel waits for the one ahead.
    if (cut.overlaps) wait_for_all_before();
  }
#endif
}

template <int Dim, bool Capped, bool Codes>
bool launch(const AttentionArgs& args, const LongCut& cut, cudaStream_t stream) {
  constexpr int kBytes = LongShape<Dim>::kBytes;
  const auto kernel = attention_long_kernel<Dim, Capped, Codes>;
  const cudaError_t raised =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  KvMaps maps{};
  if (raised != cudaSuccess) return false;
  if (!Codes && (!make_cache_map(maps.k, args.kv.k, Dim, kLoadRun, 1) ||
                 !make_cache_map(maps.v, args.kv.v, Dim, kLoadRun, Dim / 64))) {
    return false;
  }
  // A block that takes several jobs prepares one beside the other; few are dealt out more evenly by
  // the device, since windows without long runs end at once.
  const int jobs = attention_wgmma_blocks(args) * cut.parts;
  const int sms = device_traits().num_sms;
  launch_kernel(kernel, jobs < kFewRounds * sms ? jobs : sms, kLongThreads, kBytes, stream, args,
                tiles_for(args, kLongQueryRows), cut, maps);
  return true;
}

// By head size.
template <bool Codes>
bool launch_long_runs(const AttentionArgs& args, const LongCut& cut, cudaStream_t stream) {
  const bool capped = args.softcap != 0;
  if (args.kv.head_dim == 128) {
    return capped ? launch<128, true, Codes>(args, cut, stream)
                  : launch<128, false, Codes>(args, cut, stream);
  }
  if (args.kv.head_dim == 64) {
    return capped ? launch<64, true, Codes>(args, cut, stream)
                  : launch<64, false, Codes>(args, cut, stream);
  }
  return false;
}

}  // namespace
}  // namespace foretoken::cuda
