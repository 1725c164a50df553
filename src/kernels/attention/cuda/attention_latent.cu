#include <algorithm>

#include "kernels/attention/cuda/attention_latent_codes.cuh"
#include "kernels/attention/cuda/attention_latent_gather.cuh"
#include "kernels/attention/cuda/attention_latent_loader.cuh"
#include "kernels/attention/cuda/attention_latent_plan.cuh"
#include "kernels/attention/cuda/attention_latent_scores.cuh"
#include "kernels/attention/cuda/attention_latent_values.cuh"

namespace foretoken::cuda {
namespace {

struct LatentMaps {
  CUtensorMap keys;  // of bfloat16
  LatentCodeMaps codes;
  CUtensorMap queries;
};

// How keys come to shared memory.
enum class LatentKeys {
  kPages,     // of bfloat16, by the copy engine
  kCodes,     // the same of KvFormat::kFp8
  kGathered,  // of bfloat16, one by one
};

template <int Ranks, bool Ahead, LatentKeys Keys>
__global__ void __launch_bounds__(kLatentThreads, 1)
    attention_latent_kernel(const __grid_constant__ AttentionArgs args,
                            const __grid_constant__ LatentLaunch launch,
                            const __grid_constant__ LatentMaps maps) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  constexpr bool kCodes = Keys == LatentKeys::kCodes;
  constexpr bool kGathers = Keys == LatentKeys::kGathered;
  extern __shared__ char raw[];
  __shared__ LatentState<Ranks> state;
  __shared__ LatentPlan plan;
  const LatentMemory<Ranks> memory{raw + (1024 - shared_address(raw) % 1024) % 1024};
  const int thread = static_cast<int>(threadIdx.x);
  const auto rank = static_cast<int>(cluster_rank());
  __shared__ LatentLanding<Ranks> landing;
  if (thread == 0) {
    state.init(kGathers ? LatentGatherer<Ranks>::kThreads : 1);
    if (kCodes) landing.init();
  }
  const int cluster = static_cast<int>(blockIdx.x) / Ranks;
  int* record = launch.records;
  if (record != nullptr) record += cluster * LatentPlan::kKeptWords;
  const bool kept = launch.repeats && read_kept(plan, record);
  if (!kept) LatentPlanner(plan, args, launch, cluster, static_cast<int>(gridDim.x) / Ranks).run();
  if (kept || rank > 0) record = nullptr;
  if (record != nullptr) keep_plan(plan, record);
  sync_cluster();
  const int group = thread / 128;
  if (group < 2) {
    raise_registers<168>();
    LatentReader<Ranks>{args, launch.space, memory, state, rank, group, thread % 128}.run(plan);
  } else if (group == 2) {
    raise_registers<136>();
    LatentScorer<Ranks, Ahead, kGathers>{args,  launch.space, scoring_of(args), memory,
                                         state, rank,         thread % 128}
        .run(plan);
  } else {
    lower_registers<40>();
    const LatentCodes<Ranks> codes{memory};
    if (thread / 32 % 4 == 1) {
      LatentQueryLoader<Ranks>{args, maps.queries, memory, state, rank}.run(plan);
    } else if (kGathers) {
      if (thread / 32 % 4 > 1) {
        LatentGatherer<Ranks>{args, memory, state, rank, thread % 64}.run(plan);
      }
    } else if (thread / 32 % 4 == 0) {
      LatentKeyLoader<Ranks, kCodes>{args, maps.keys, memory, state,
                                     rank, record,    kept,   {maps.codes, codes, landing, rank}}
          .run(plan);
    } else if (kCodes) {
      LatentWidener<Ranks>{state, codes, landing, rank, thread % 64}.run(plan);
    }
  }
  // Others may still write here.
  __syncwarp();
  sync_cluster();
#endif
}

bool make_key_maps(LatentMaps& maps, const KvLayer& kv) {
  if (kv.format != KvFormat::kFp8) {
    return make_cache_map(maps.keys, kv.k, kLatentDim, kLatentPage, 1);
  }
  const auto bytes = static_cast<int>(kv_entry_bytes(kv));
  const auto* rest = static_cast<const char*>(kv.k) + latent_plain_at(kLatentValues);
  constexpr int kScales = LatentCodes<2>::kEntryScales;
  return make_byte_map(maps.codes.codes, kv.k, bytes, bytes, 64, kLatentPage) &&
         make_byte_map(maps.codes.scales, kv.k, bytes, bytes, kScales, kLatentPage) &&
         make_byte_map(maps.codes.rest, rest, kChunkBytes, bytes, kChunkBytes, kLatentPage);
}

// Clusters of the kernel that find a place on the device at the same time.
template <int Ranks>
int clusters_at_once(const void* kernel, int shared_bytes) {
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {Ranks, 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = device_traits().num_sms / Ranks * Ranks;
  config.blockDim = kLatentThreads;
  config.dynamicSmemBytes = static_cast<size_t>(shared_bytes);
  config.attrs = &attribute;
  config.numAttrs = 1;
  int clusters = 0;
  if (cudaOccupancyMaxActiveClusters(&clusters, kernel, &config) != cudaSuccess || clusters < 1) {
    cudaGetLastError();
    clusters = device_traits().num_sms / Ranks;
  }
  return clusters;
}

template <int Ranks, bool Ahead, LatentKeys Keys>
bool launch_ranks(const AttentionArgs& args, cudaStream_t stream) {
  using S = LatentShape<Ranks>;
  const auto kernel = attention_latent_kernel<Ranks, Ahead, Keys>;
  const cudaError_t raised =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, S::kBytes);
  LatentMaps maps{};
  constexpr bool kGathers = Keys == LatentKeys::kGathered;
  if (raised != cudaSuccess || (!kGathers && !make_key_maps(maps, args.kv)) ||
      !make_row_map(maps.queries, args.q, int64_t{args.max_rows} * args.num_heads, kLatentDim, 16,
                    1)) {
    return false;
  }
  LatentLaunch launch{};
  static const int most = clusters_at_once<Ranks>(reinterpret_cast<const void*>(kernel), S::kBytes);
  launch.max_heads = std::min(args.num_heads, S::kQueries);
  launch.max_tokens = S::kQueries / launch.max_heads;
  launch.chunks = ceil_div(args.num_heads, launch.max_heads);
  // So that a cluster has room for its jobs.
  launch.rows = std::min(kLatentRows, (kLatentJobs - 8) * most / launch.chunks);
  launch.space.workspace = args.workspace;
  int64_t floats = args.workspace_floats;
  const int64_t kept = int64_t{most} * LatentPlan::kKeptWords;
  if (!kGathers && args.workspace != nullptr && args.max_rows <= launch.rows && floats > 4 * kept) {
    floats = (floats - kept) / 4 * 4;
    launch.records = reinterpret_cast<int*>(args.workspace + floats);
    launch.repeats = args.repeats;
  }
  if (args.workspace != nullptr && args.sync != nullptr && args.num_heads % launch.max_heads == 0 &&
      launch.max_heads >= Ranks) {
    launch.space.capacity = std::min<int64_t>(floats / LatentSpace::floats(Ranks), INT32_MAX / 2);
  }
  const int max_units = ceil_div(int64_t{args.max_blocks} * args.kv.block_size, kUnit);
  const int max_parts = launch.space.capacity > 0 ? LatentSplits::of(max_units - 1) + 1 : 1;
  for (int row = 0; row < args.max_rows; row += launch.rows) {
    launch.first_row = row;
    if (row > 0) launch.space.capacity = 0;
    const int64_t tiles = int64_t{std::min(args.max_rows - row, launch.rows)} * launch.chunks;
    const int clusters = static_cast<int>(std::min<int64_t>(tiles * max_parts, most));
    launch_cluster(kernel, clusters * Ranks, Ranks, kLatentThreads, S::kBytes, stream, args, launch,
                   maps);
  }
  return true;
}

template <LatentKeys Keys>
bool launch_latent(const AttentionArgs& args, cudaStream_t stream) {
  // Few tiles leave multiprocessors for more blocks of a cluster, of which not all find a place.
  const int tiles = args.max_rows * ceil_div(args.num_heads, LatentShape<4>::kQueries);
  if (tiles * 40 <= device_traits().num_sms) return launch_ranks<4, true, Keys>(args, stream);
  return launch_ranks<2, false, Keys>(args, stream);
}

}  // namespace

bool launch_attention_latent(const AttentionArgs& args, cudaStream_t stream) {
  const KvLayer& kv = args.kv;
  if (!device_traits().wgmma || kv.dtype != DType::kBF16) return false;
  if (kv.format == KvFormat::kInt8) return false;
  if (kv.head_dim != kLatentDim || kv.value_dim != kLatentValues || kv.num_kv_heads != 1) {
    return false;
  }
  if (args.slopes != nullptr || args.softcap != 0 || args.last_seen != nullptr) return false;
  const bool codes = kv.format == KvFormat::kFp8;
  if (kv.block_size % kLatentPage != 0) {
    return !codes && launch_latent<LatentKeys::kGathered>(args, stream);
  }
  return codes ? launch_latent<LatentKeys::kCodes>(args, stream)
               : launch_latent<LatentKeys::kPages>(args, stream);
}

}  // namespace foretoken::cuda
