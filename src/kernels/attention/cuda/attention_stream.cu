#include <algorithm>

#include "kernels/attention/cuda/attention_join.cuh"
#include "kernels/attention/cuda/attention_reader.cuh"
#include "kernels/cuda/tensor_map.cuh"

// Attention of few rows a sequence: the time is that of reading K and V once. A team is one warp
// that fills a ring in shared memory from the cache's blocks by the copy engine, job after job, and
// kReaders warps that multiply: each scores a quarter of a unit's positions and sums up a quarter
// of the values' dimensions.
namespace foretoken::cuda {
namespace {

// Long runs are slower here, but a second kernel costs 2 to 8 us where it finds none, and more than
// it saves where they are few. Buckets of more rows than these leave them to it.
int rows_without_long(RunLengths runs, bool cuts) {
  constexpr int kFew = 128;
  switch (runs) {
    case RunLengths::kShort:
      return kMaxPlannedRows;
    case RunLengths::kLong:
      return kFew;
    case RunLengths::kFar:
      return cuts ? kLongRun : kFew;
    case RunLengths::kUnknown:
      break;
  }
  return 2 * kFew;
}

// Whether the records of all teams of this block tell their jobs.
template <int Teams>
__device__ bool are_kept(const JobRecord* of_block) {
  bool kept = true;
#pragma unroll
  for (int team = 0; team < Teams; ++team) {
    const int count = record_word(of_block[team * kMaxRecords], JobRecord::kCount);
    kept = kept && count != JobRecord::kUnknown;
  }
  return kept;
}

// All threads of a block; where rows are few only its loaders may read the plan afterwards.
template <class Counts>
__device__ void make_plan(AttentionPlan& plan, const AttentionArgs& args, const PlanShape& shape) {
  if (args.max_rows > kFewPlannedRows) return PlanMaker<Counts::kWarps>(plan, args, shape).run();
  if (threadIdx.y == 0) PlanMaker<1>(plan, args, shape).run();
  if (threadIdx.y < Counts::kTeams) sync_loaders<Counts::kTeams>();
}

// Blocks of (32, TeamCounts::kWarps) threads, one a multiprocessor. The plan is made while rope_kv
// runs, which lets this kernel start when all kernels before it have ended.
template <int Dim, int BlockSize, bool Codes>
__global__ void __launch_bounds__(TeamCounts<Codes>::kThreads, 1)
    attention_stream_kernel(const __grid_constant__ AttentionArgs args,
                            const __grid_constant__ PlanShape shape,
                            const __grid_constant__ KvMaps maps) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using Counts = TeamCounts<Codes>;
  constexpr int kTeams = Counts::kTeams;
  extern __shared__ __align__(1024) uint8_t shared[];
  __shared__ AttentionPlan plan;
  __shared__ TeamState<Codes> states[kTeams];
  __shared__ int num_started;
  const int warp = threadIdx.y;
  const TeamMemory<Dim, BlockSize, Codes> memory{shared};
  if (warp < kTeams && threadIdx.x == 0) {
    if (warp == 0) num_started = 0;
    states[warp].init();
    prefetch_map(warp == 0 ? &maps.k : &maps.v);
  }
  __syncthreads();
  const int first_team = static_cast<int>(blockIdx.x) * kTeams;
  JobRecord* records = shape.records;
  if (records != nullptr) records += first_team * kMaxRecords;
  int word = 0;
  if (shape.repeats && warp < kTeams) word = record_word(records[warp * kMaxRecords], threadIdx.x);
  const bool kept = shape.repeats && are_kept<kTeams>(records);
  if (!kept) make_plan<Counts>(plan, args, shape);
  if (warp < kTeams) {
    if (records != nullptr) records += warp * kMaxRecords;
    TeamLoader<Dim, BlockSize, Codes> loader{
        args, maps, memory, states[warp], warp, num_started, evict_first_policy()};
    if (kept) return loader.run(records, word);
    const int teams = static_cast<int>(gridDim.x) * kTeams;
    loader.run(JobWalk(plan, args, shape, first_team + warp, teams), records);
  } else if (warp < kTeams * (kReaders + 1)) {
    const int team = (warp - kTeams) / kReaders;
    TeamReader<Dim, BlockSize, Codes>{args,         shape, scoring_of(args),          memory,
                                      states[team], team,  (warp - kTeams) % kReaders}
        .run();
  }
#endif
}

// Parts cost a microsecond or two, and a second kernel that joins them as much even where nothing
// is cut: with so few splits for so many tiles they would not save that.
bool may_cut(const AttentionArgs& args, int max_splits, int chunks) {
  const bool many = int64_t{args.max_rows} * chunks >= device_traits().num_sms;
  return args.workspace != nullptr && max_splits > (many ? 8 : uncut_splits(args));
}

// The records of all teams, at the end of the workspace where they are a small part of it.
JobRecord* job_records(const AttentionArgs& args, int teams) {
  constexpr int kFloats = JobRecord::kWords;
  const int64_t records = int64_t{teams} * device_traits().num_sms * kMaxRecords;
  const int64_t room = args.workspace_floats / kFloats;
  if (args.workspace == nullptr || room < 4 * records) return nullptr;
  return reinterpret_cast<JobRecord*>(args.workspace + (room - records) * kFloats);
}

PartialSpace partial_space(const AttentionArgs& args, const JobRecord* records, bool cuts) {
  const int64_t floats = records == nullptr
                             ? args.workspace_floats
                             : reinterpret_cast<const float*>(records) - args.workspace;
  const int64_t rest = floats - int64_t{args.max_rows} * 4;
  PartialSpace space{args.workspace, args.max_rows, args.kv.head_dim, 0, 0};
  if (cuts && rest > 0) {
    space.capacity = std::min<int64_t>(rest / (args.kv.head_dim + 2), INT32_MAX / 2);
  }
  space.long_begin = args.runs == RunLengths::kFar ? space.capacity / 4 : space.capacity;
  return space;
}

// As many blocks as there are multiprocessors, where a tile's splits are worth being shared.
LongCut cut_of(const AttentionArgs& args, const PartialSpace& space) {
  constexpr int kMaxParts = 8;
  LongCut cut{space};
  if (space.long_begin == space.capacity) return cut;
  const int64_t room = space.capacity - space.long_begin;
  cut.splits = static_cast<int>(room / (int64_t{args.max_rows} * args.num_heads));
  cut.parts = std::clamp(device_traits().num_sms / attention_wgmma_blocks(args), 1, kMaxParts);
  return cut;
}

template <int Dim>
void launch_join(const AttentionArgs& args, const PlanShape& shape, cudaStream_t stream) {
  const auto kernel = attention_join_kernel<Dim>;
  prefer_shared_memory(kernel);
  const int columns = args.num_heads * (Dim / 32);
  const int rows = std::max(device_traits().num_sms * kJoinBlocksPerSm / columns, 1);
  launch_kernel(kernel, dim3(std::min(rows, args.max_rows), columns), kJoinThreads,
                sizeof(PartialFold), stream, args, shape);
}

// Runs that the streaming kernel leaves. What it leaves in parts is ended here too.
template <int Dim>
void launch_long(const AttentionArgs& args, const PartialSpace& space, cudaStream_t stream) {
  const LongCut cut = cut_of(args, space);
  if (!launch_attention_wgmma(args, cut, stream)) return launch_attention_long(args, stream);
  if (cut.parts == 1) return;
  launch_kernel(attention_fold_kernel<Dim>, dim3(args.max_rows, args.num_heads), Dim, 0, stream,
                args, space);
}

// Of K or V, to copy a block in one box; see UnitShape.
template <class Unit>
bool make_map(CUtensorMap& map, const void* cache) {
  constexpr int kWords = Unit::kBlockBytes / Unit::kRows / 2;  // of 16 bits in a row of all columns
  return make_cache_map(map, cache, kWords, Unit::kRows, Unit::kColumns);
}

// is_head: of short runs that end before the last row alone.
template <int Dim, int BlockSize, bool Codes>
bool launch(const AttentionArgs& args, bool is_head, cudaStream_t stream) {
  using Memory = TeamMemory<Dim, BlockSize, Codes>;
  using Unit = typename Memory::Unit;
  using Counts = TeamCounts<Codes>;
  constexpr int kBytes = Memory::kAllBytes;
  const auto kernel = attention_stream_kernel<Dim, BlockSize, Codes>;
  const cudaError_t raised =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  prefer_shared_memory(kernel);
  KvMaps maps;
  if (raised != cudaSuccess || !make_map<Unit>(maps.k, args.kv.k) ||
      !make_map<Unit>(maps.v, args.kv.v)) {
    return false;
  }
  const int max_splits = splits_bound(args);
  const TileShape tile = tiles_for(args, kGroupRows);
  const int chunks = head_chunks(args, tile);
  JobRecord* const records = job_records(args, Counts::kTeams);
  const PartialSpace space = partial_space(args, records, may_cut(args, max_splits, chunks));
  const bool cuts = space.capacity > 0;
  const int64_t jobs = int64_t{args.max_rows} * chunks * (cuts ? max_splits : 1);
  const int blocks = static_cast<int>(std::min<int64_t>(jobs, device_traits().num_sms));
  const PlanShape shape{
      .tile = tile,
      .chunks = chunks,
      .leaves_long = is_head || args.max_rows > rows_without_long(args.runs, cuts),
      .leaves_last = is_head,
      .space = space,
      .records = records,
      .repeats = args.repeats && records != nullptr,
      .team_part = 1.0 / (blocks * Counts::kTeams),
      .joins = cuts && args.sync != nullptr && max_splits <= kWarpSplits};
  launch_kernel(kernel, blocks, dim3(32, Counts::kWarps), kBytes, stream, args, shape, maps);
  if (shape.leaves_long && !is_head) launch_long<Dim>(args, shape.space, stream);
  if (cuts && !shape.joins) launch_join<Dim>(args, shape, stream);
  return true;
}

template <int Dim>
bool launch(const AttentionArgs& args, bool is_head, cudaStream_t stream) {
  const bool codes = args.kv.format == KvFormat::kFp8;
  switch (args.kv.block_size) {
    case 16:
      return codes ? launch<Dim, 16, true>(args, is_head, stream)
                   : launch<Dim, 16, false>(args, is_head, stream);
    case 32:
      return codes ? launch<Dim, 32, true>(args, is_head, stream)
                   : launch<Dim, 32, false>(args, is_head, stream);
    default:
      return false;
  }
}

bool launch_planned(const AttentionArgs& args, bool is_head, cudaStream_t stream) {
  const KvLayer& kv = args.kv;
  if (!device_traits().wgmma || kv.dtype != DType::kBF16) return false;
  if (kv.format == KvFormat::kInt8) return false;
  if (kv.value_dim > 0 || weighs_distances(args) || args.last_seen != nullptr) return false;
  if (kv.head_dim == 128) return launch<128>(args, is_head, stream);
  if (kv.head_dim == 64) return launch<64>(args, is_head, stream);
  return false;
}

}  // namespace

bool launch_attention_stream(const AttentionArgs& args, cudaStream_t stream) {
  return args.max_rows <= kMaxPlannedRows && launch_planned(args, false, stream);
}

bool launch_attention_head(const AttentionArgs& args, cudaStream_t stream) {
  if (args.max_rows <= kHeadRows) return false;
  if (args.runs != RunLengths::kLong && args.runs != RunLengths::kFar) return false;
  AttentionArgs head = args;
  head.max_rows = kHeadRows;
  head.runs = RunLengths::kLong;  // all of the workspace is for short runs
  return launch_planned(head, true, stream);
}

}  // namespace foretoken::cuda
