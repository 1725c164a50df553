#pragma once
#include "kernels/attention/cuda/long/attention_long.cuh"
#include "kernels/attention/cuda/long/attention_long_codes.cuh"
#include "kernels/attention/cuda/long/attention_long_loader.cuh"
#include "kernels/attention/cuda/long/attention_long_reader.cuh"

// The kernel of the attention of long runs. Codes: keys and values are those of KvFormat::kFp8;
// attention_wgmma_codes.cu has these, attention_wgmma_wide.cu those of a wide team,
// attention_wgmma.cu the others.
namespace foretoken::cuda {
namespace {

constexpr int kFewRounds = 3;

template <int Dim, bool Capped, bool Codes, bool Wide>
__global__ void __launch_bounds__(LongTeam<Wide>::kThreads, 1)
    attention_long_kernel(const __grid_constant__ AttentionArgs args, TileShape shape,
                          const __grid_constant__ LongCut cut,
                          const __grid_constant__ KvMaps maps) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(128) char memory[];
  __shared__ LongState<Wide> state;
  using Team = LongTeam<Wide>;
  using S = LongShape<Dim, Wide>;
  char* ring_memory = memory + (1024 - shared_address(memory) % 1024) % 1024;
  char* queries = ring_memory + S::kQueriesAt;
  using Widener = LongWidener<Dim>;
  if (threadIdx.x == 0) {
    state.init(Codes ? Widener::kWarps : kQueryLoaders, Codes ? Widener::kWarps : 1);
  }
  if (!cut.overlaps) wait_for_previous();
  let_next_start();
  __syncthreads();
  const int warp = threadIdx.x / 32;
  if (warp < Team::kReaders) {
    raise_registers<Team::kReaderRegisters>();
    uint32_t barriers = shared_address(&state);
    asm volatile("" : "+r"(barriers));  // or it is formed anew at every use
    LongReader<Dim, Capped, Codes, Wide>{args,
                                         cut,
                                         scoring_of(args),
                                         shared_address(ring_memory),
                                         shared_address(queries) + uniform(warp / 4) * 64 * 128,
                                         state,
                                         barriers,
                                         threadIdx.x % 32 == 0}
        .run();
  } else {
    lower_registers<Team::kLoaderRegisters>();
    if constexpr (Codes) {
      const int lane = static_cast<int>(threadIdx.x) % 32;
      Widener widener{args, ring_memory, queries, state, warp - Team::kReaders, lane};
      if (warp > Team::kReaders) {
        widener.run(nullptr);
      } else {
        LongWalk walk(args, cut, shape);
        asm volatile("" ::"l"(&walk) : "memory");  // it stays in memory, registers are for codes
        widener.run(&walk);
      }
    } else if (warp == Team::kReaders) {
      LongKvLoader<Dim, Wide>{args, maps.k, ring_memory, state}.run_keys(
          LongWalk(args, cut, shape));
    } else if (warp == Team::kReaders + 1) {
      LongKvLoader<Dim, Wide>{args, maps.v, ring_memory, state}.run_values();
    } else {
      const int thread = static_cast<int>(threadIdx.x) - (Team::kReaders + 2) * 32;
      LongQueryLoader<Dim, Wide>{args, queries, state, thread}.run();
    }
    // Whoever waits for this kernel waits for the one ahead.
    if (cut.overlaps) wait_for_all_before();
  }
#endif
}

template <int Dim, bool Capped, bool Codes, bool Wide>
bool launch(const AttentionArgs& args, const LongCut& cut, cudaStream_t stream) {
  using Team = LongTeam<Wide>;
  constexpr int kBytes = LongShape<Dim, Wide>::kBytes;
  const auto kernel = attention_long_kernel<Dim, Capped, Codes, Wide>;
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
  const int jobs = long_tiles(args, Team::kQueryRows) * cut.parts;
  const int sms = device_traits().num_sms;
  launch_kernel(kernel, jobs < kFewRounds * sms ? jobs : sms, Team::kThreads, kBytes, stream, args,
                tiles_for(args, Team::kQueryRows), cut, maps);
  return true;
}

// By head size.
template <bool Codes, bool Wide>
bool launch_long_runs(const AttentionArgs& args, const LongCut& cut, cudaStream_t stream) {
  const bool capped = args.softcap != 0;
  if (args.kv.head_dim == 128) {
    return capped ? launch<128, true, Codes, Wide>(args, cut, stream)
                  : launch<128, false, Codes, Wide>(args, cut, stream);
  }
  if (args.kv.head_dim == 64) {
    return capped ? launch<64, true, Codes, Wide>(args, cut, stream)
                  : launch<64, false, Codes, Wide>(args, cut, stream);
  }
  return false;
}

}  // namespace
}  // namespace foretoken::cuda
