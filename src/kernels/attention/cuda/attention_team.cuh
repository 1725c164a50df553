#pragma once
#include "kernels/attention/cuda/attention_plan.cuh"
#include "kernels/cuda/bulk_copy.cuh"
#include "kernels/cuda/tensor_map.cuh"

// What a team of the streaming attention shares, and the warp of it that loads.
namespace foretoken::cuda {

inline constexpr int kReaders = 4;

// The teams of a block, and how many units of K or V the ring of each holds. A team's unit is a
// chain of waits (products, the highest score, weights, products), about as long over codes as over
// bfloat16, which have twice the bytes to wait for: so codes have another team.
template <bool Codes>
struct TeamCounts {
  static constexpr int kTeams = Codes ? 3 : 2;
  static constexpr int kSlots = Codes ? 4 : 5;
  static constexpr int kWarps = kTeams * (kReaders + 1);
  static constexpr int kThreads = kWarps * 32;
  static_assert(kWarps <= kMaxPlanWarps);
};

// A unit of K or V in shared memory: blocks of the cache. Of bfloat16 each lies as columns of 64
// with BlockSize rows in the 128-byte swizzle; codes of KvFormat::kFp8 as rows of 128 bytes with
// one or two positions each, in that swizzle too.
template <int Dim, int BlockSize, bool Codes>
struct UnitShape {
  static constexpr int kBlocks = kUnit / BlockSize;
  static constexpr int kColumnBytes = BlockSize * 128;
  static constexpr int kBlockBytes = BlockSize * Dim * (Codes ? 1 : 2);
  static constexpr int kBytes = kUnit / BlockSize * kBlockBytes;
  static constexpr int kColumns = Codes ? 1 : Dim / 64;  // of a block
  static constexpr int kRows = kBlockBytes / kColumns / 128;
  static constexpr int kPart = Dim / kReaders;       // dimensions of a reader
  static constexpr int kQueryStride = Dim * 2 + 16;  // rows of q start in different banks
  static_assert(kUnit % BlockSize == 0 && BlockSize % 16 == 0 && Dim % 64 == 0 && kPart <= 64);

  // Of 16 positions.
  __device__ static constexpr int group_offset(int group) {
    if constexpr (Codes) return group * 16 * Dim;
    return group * 16 / BlockSize * kBlockBytes + group * 16 % BlockSize * 128;
  }
  // Of 8 dimensions of a row that is `row` modulo 8.
  __device__ static int chunk_offset(int row, int chunk) {
    return chunk / 8 * kColumnBytes + ((chunk % 8 ^ row % 8) << 4);
  }
  // 16 dimensions times `step` further, from an address whose chunk is the first or second of all.
  __device__ static uint32_t step_on(uint32_t at, int step) {
    return (at ^ step % 4 * 32) + step / 4 * kColumnBytes;
  }
  // Of 16 codes, number `chunk` of a position's, in a group of 16 positions.
  __device__ static int code_offset(int position, int chunk) {
    constexpr int kTogether = 128 / Dim;  // positions of a row
    const int row = position / kTogether;
    return row * 128 + ((position % kTogether * (Dim / 16) + chunk ^ row % 8) << 4);
  }
};

// What a team shares. A place of `jobs` is full when the job and its queries are there.
template <bool Codes>
struct TeamState {
  static constexpr int kPlaces = 2;
  static constexpr int kSlots = TeamCounts<Codes>::kSlots;
  AttentionJob jobs[kPlaces];
  uint64_t job_full[kPlaces], job_empty[kPlaces];
  uint64_t full[kSlots], empty[kSlots];
  // Of a reader's positions: the highest score of a row, and the weights by half and lane.
  alignas(16) float tops[kGroupRows][kReaders];
  float4 weights[kReaders][2][32];
  bool joins;  // the team's last job was the last of its tile

  __device__ void init() {
    for (int i = 0; i < kPlaces; ++i) {
      init_barrier(job_full + i, 1);
      init_barrier(job_empty + i, kReaders * 32);
    }
    for (int i = 0; i < kSlots; ++i) {
      init_barrier(full + i, 1);
      init_barrier(empty + i, kReaders);
    }
    publish_barriers();
  }
};

// Shared memory of a team: the ring, then the queries of each place.
template <int Dim, int BlockSize, bool Codes>
struct TeamMemory {
  using Unit = UnitShape<Dim, BlockSize, Codes>;
  static constexpr int kTeams = TeamCounts<Codes>::kTeams;
  static constexpr int kPlaces = TeamState<Codes>::kPlaces;
  static constexpr int kQueryBytes = kGroupRows * Unit::kQueryStride;
  static constexpr int kRingBytes = TeamCounts<Codes>::kSlots * Unit::kBytes;
  static constexpr int kAllBytes = kTeams * (kRingBytes + kPlaces * kQueryBytes);
  uint8_t* rings;

  __device__ uint8_t* slot(int team, int i) const {
    return rings + team * kRingBytes + i * Unit::kBytes;
  }
  __device__ uint8_t* queries(int team, int place) const {
    return rings + kTeams * kRingBytes + (team * kPlaces + place) * kQueryBytes;
  }
};

// Barrier of the loaders of a block.
template <int Teams>
__device__ void sync_loaders() {
  asm volatile("bar.sync %0, %1;" ::"n"(Teams + 1), "n"(Teams * 32) : "memory");
}

__device__ inline int record_word(const JobRecord& record, int i) {
  return __ldcg(reinterpret_cast<const int*>(&record) + i);
}

// The warp that fills the ring: K, V, K, V, ... of its jobs. The next op may start when all have
// asked for what they need first: what it fetches would make them wait.
template <int Dim, int BlockSize, bool Codes>
struct TeamLoader {
  using Unit = UnitShape<Dim, BlockSize, Codes>;
  using Counts = TeamCounts<Codes>;
  const AttentionArgs& args;
  const KvMaps& maps;
  TeamMemory<Dim, BlockSize, Codes> memory;
  TeamState<Codes>& state;
  int team;
  int& num_started;  // loaders of the block that have handed out a job
  uint64_t policy;
  RingPlace<TeamState<Codes>::kPlaces> job_place{};
  RingPlace<Counts::kSlots> slot{};
  bool started = false;  // has handed out a job

  // A job without tokens is the end. Queries are there when the op before has ended.
  __device__ void hand_out(const AttentionJob& job) {
    if (!started) wait_for_all_before();
    wait_barrier(state.job_empty + job_place.place, job_place.parity ^ 1);
    const int rows = job.tile.num_tokens * job.tile.heads;
    uint64_t* full = state.job_full + job_place.place;
    if (threadIdx.x == 0) {
      state.jobs[job_place.place] = job;
      arrive_expecting(full, rows * Dim * 2);
    }
    const int row = static_cast<int>(threadIdx.x);
    if (row < rows) {
      const int64_t head = int64_t{job.tile.first_row + row / job.tile.heads} * args.num_heads +
                           job.tile.first_head + row % job.tile.heads;
      copy_bulk(memory.queries(team, job_place.place) + row * Unit::kQueryStride,
                static_cast<const __nv_bfloat16*>(args.q) + head * Dim, Dim * 2, full, policy);
    }
    job_place.advance();
    if (started) return;
    started = true;
    if (threadIdx.x == 0 && atomicAdd(&num_started, 1) == Counts::kTeams - 1) let_next_start();
  }

  // block: of this lane, -1: none; blocks: of the unit.
  __device__ void load(const CUtensorMap& map, int block, int blocks, int kv_head) {
    wait_barrier(state.empty + slot.place, slot.parity ^ 1);
    uint64_t* full = state.full + slot.place;
    if (threadIdx.x == 0) arrive_expecting(full, blocks * Unit::kBlockBytes);
    if (block >= 0) {
      copy_box(memory.slot(team, slot.place) + threadIdx.x * Unit::kBlockBytes, &map,
               int3{0, (block * args.kv.num_kv_heads + kv_head) * Unit::kRows, 0}, full, policy);
    }
    slot.advance();
  }

  // find_block(unit): the block of the unit that this lane loads, or -1. Nothing of a job is read
  // before the op before has ended: what a drafter's row sees, another run of the op may write.
  template <class FindBlock>
  __device__ void load_job(const AttentionJob& job, const FindBlock& find_block) {
    const int first = job.tile.first_kv / BlockSize;
    const int last = job.tile.last_kv / BlockSize;
    int next = find_block(job.first_unit);
    hand_out(job);
    for (int unit = job.first_unit; unit <= job.last_unit; ++unit) {
      const int block = next;
      next = find_block(unit + 1);
      const int begin = unit * Unit::kBlocks;
      const int blocks = min(begin + Unit::kBlocks, last + 1) - max(begin, first);
      load(maps.k, block, blocks, job.tile.kv_head);
      load(maps.v, block, blocks, job.tile.kv_head);
    }
  }

  // Block number i of the unit, or -1.
  __device__ int block_of(const AttentionJob& job, int unit, int i) const {
    const int32_t* table = args.block_tables + int64_t{job.tile.slot} * args.max_blocks;
    const int index = unit * Unit::kBlocks + i;
    const bool is_read = i < Unit::kBlocks && unit <= job.last_unit &&
                         index >= job.tile.first_kv / BlockSize &&
                         index <= job.tile.last_kv / BlockSize;
    return is_read ? table[index] : -1;
  }

  __device__ void keep(JobRecord& record, const AttentionJob& job) const {
    const int lane = static_cast<int>(threadIdx.x);
    const int i = lane - JobRecord::kFirstBlock;
    if (lane == 0) record.job = job;
    if (i < 0) return;
    record.blocks[i] = block_of(job, job.first_unit + i / Unit::kBlocks, i % Unit::kBlocks);
  }

  __device__ void end_jobs() {
    const AttentionJob none{};
    hand_out(none);
  }

  // The jobs of a walk. records: where they are kept, or null.
  __device__ void run(JobWalk walk, JobRecord* records) {
    const int lane = static_cast<int>(threadIdx.x);
    int count = 0;
    for (; walk.valid(); walk.next()) {
      const AttentionJob job = walk.job();
      if (records != nullptr && count < kMaxRecords) keep(records[count], job);
      load_job(job, [&](int unit) { return block_of(job, unit, lane); });
      ++count;
    }
    if (records != nullptr && lane == 0) {
      records->count = count <= kMaxRecords ? count : JobRecord::kUnknown;
    }
    end_jobs();
  }

  // The same jobs from what was kept. word: this lane's of the first record.
  __device__ void run(const JobRecord* records, int word) {
    const int lane = static_cast<int>(threadIdx.x);
    const int count = __shfl_sync(0xffffffffu, word, JobRecord::kCount);
    for (int i = 0; i < count; ++i) {
      const int next = i + 1 < count ? record_word(records[i + 1], lane) : 0;
      load_kept(word);
      word = next;
    }
    end_jobs();
  }

 private:
  // The job of a record, of which each lane has a word.
  __device__ void load_kept(int word) {
    constexpr int kKept = JobRecord::kBlocks / Unit::kBlocks;  // units
    const int lane = static_cast<int>(threadIdx.x);
    int words[JobRecord::kCount];
#pragma unroll
    for (int i = 0; i < JobRecord::kCount; ++i) words[i] = __shfl_sync(0xffffffffu, word, i);
    AttentionJob job;
    memcpy(&job, words, sizeof job);
    load_job(job, [&](int unit) {
      const int i = unit - job.first_unit;
      if (i >= kKept) return block_of(job, unit, lane);
      const int from = JobRecord::kFirstBlock + i * Unit::kBlocks + lane % Unit::kBlocks;
      const int block = __shfl_sync(0xffffffffu, word, from);
      return lane < Unit::kBlocks ? block : -1;
    });
  }
};

}  // namespace foretoken::cuda
