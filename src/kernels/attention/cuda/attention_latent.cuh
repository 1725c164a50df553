#pragma once
#include "kernels/attention/cuda/attention_common.cuh"
#include "kernels/attention/cuda/attention_mma.cuh"
#include "kernels/cuda/bulk_copy.cuh"
#include "kernels/cuda/tensor_map.cuh"
#include "kernels/cuda/wgmma.cuh"

// What the kernel of latent attention shares: one key of 576 elements a position, of which the
// first 512 are the value. A cluster of blocks takes the rows of a sequence and a part of its
// positions; each block holds a part of the elements of every key, so that nothing is read twice,
// scores its part, tells the others, and sums up its own elements of the values. Positions and
// elements are the rows of the products, queries the columns, of which there are as many as needed.
namespace foretoken::cuda {

inline constexpr int kLatentDim = 576;
inline constexpr int kLatentValues = 512;
inline constexpr int kLatentPage = 16;      // positions of a copy; every block has a multiple
inline constexpr int kLatentRows = 1024;    // token rows of a launch, at most
inline constexpr int kLatentThreads = 512;  // warpgroups: two of values, scores, loaders
inline constexpr int kLatentJobs = 72;      // of a cluster, at most
inline constexpr int kChunkBytes = 128;     // of a key: 64 elements in the 128-byte swizzle
inline constexpr int kUnitChunk = kUnit * kChunkBytes;

// Bounds of the splits of latent attention, in units. They are longer than AttentionSplits, since
// their partial results are large.
struct LatentSplits {
  static constexpr int kNearEnd = 64;
  static constexpr int kMiddleEnd = 256;

  // Number of the split that holds `unit`.
  __host__ __device__ static constexpr int of(int unit) {
    if (unit < kNearEnd) return unit / 8;
    if (unit < kMiddleEnd) return kNear + (unit - kNearEnd) / 16;
    return kNear + kMiddle + (unit - kMiddleEnd) / 32;
  }
  // First unit of split number `split`.
  __host__ __device__ static constexpr int begin(int split) {
    if (split < kNear) return split * 8;
    if (split < kNear + kMiddle) return kNearEnd + (split - kNear) * 16;
    return kMiddleEnd + (split - kNear - kMiddle) * 32;
  }
  __host__ __device__ static constexpr bool ends(int unit) { return of(unit + 1) != of(unit); }
  // First unit of the split that holds `unit`, and units of it; it begins at a multiple of them.
  __host__ __device__ static constexpr int floor(int unit) { return unit & -width(unit); }
  __host__ __device__ static constexpr int width(int unit) {
    return unit < kNearEnd ? 8 : unit < kMiddleEnd ? 16 : 32;
  }

 private:
  static constexpr int kNear = kNearEnd / 8;
  static constexpr int kMiddle = (kMiddleEnd - kNearEnd) / 16;
};

// Rows of a sequence with `heads` query heads each, and the units of KV positions that a cluster
// takes. Query m of the job is token m / heads, head m % heads.
struct LatentJob {
  int first_row;  // token row
  int position;   // of the first token
  int slot;
  int tokens;
  int first_head;
  int heads;
  int first_unit;
  int last_unit;
  int place;   // of the tile's partial results, in blocks of LatentSpace; -1: the tile is not cut
  int splits;  // partial results of the tile
  int split;   // the job's first; 0: it folds its splits to that one
  int unused;

  __device__ int queries() const { return tokens * heads; }
  __device__ int last_kv() const { return position + tokens - 1; }
  __device__ bool folds() const { return place < 0 || split == 0; }
};

// Partial results of tiles that are cut: blocks of 16 queries with all values, then for each block
// and rank {highest, sum of weights} of its queries. A block of the device reads only what the
// blocks with its rank have written, in the layout of its registers.
struct LatentSpace {
  static constexpr int kQueries = 16;
  float* workspace;
  int64_t capacity;  // blocks

  static constexpr int64_t floats(int ranks) {
    return int64_t{kQueries} * kLatentValues + int64_t{kQueries} * 2 * ranks;
  }
  __device__ float* values(int64_t block) const {
    return workspace + block * (kQueries * kLatentValues);
  }
  __device__ float2* states(int64_t block, int ranks) const {
    return reinterpret_cast<float2*>(values(capacity)) + block * (kQueries * ranks);
  }
};

// What the host knows.
struct LatentLaunch {
  LatentSpace space;
  int* records;  // [clusters][LatentPlan::kKeptWords], or null
  bool repeats;  // an op before has written them
  int first_row;
  int rows;       // from that on, at most kLatentRows
  int max_heads;  // of a tile
  int max_tokens;
  int chunks;  // groups of query heads
};

// Ranks: blocks of a cluster.
template <int Ranks>
struct LatentShape {
  static_assert(Ranks == 2 || Ranks == 4);
  static constexpr int kQueries = 32;  // of a tile, at most
  static constexpr int kValueChunks = 8 / Ranks;
  static constexpr int kChunks = kValueChunks + 1;  // of the last rank
  static constexpr int kStages = Ranks == 2 ? 4 : 5;
  static constexpr int kSlots = 2;                    // of scores from other ranks
  static constexpr int kMatrices = kValueChunks / 2;  // of 64 elements of a value warpgroup
  static constexpr int kStageBytes = kChunks * kUnitChunk;
  static constexpr int kQueryBytes = kChunks * kQueries * kChunkBytes;
  static constexpr int kWeightBytes = kQueries * kUnit * 2;
  static constexpr int kSlotBytes = (Ranks - 1) * kQueries * kUnit * 4;
  static constexpr int kBytes = kStages * kStageBytes + kQueryBytes + 2 * kWeightBytes +
                                kSlots * kSlotBytes + 1024;  // the start is rounded

  __device__ static int chunks_of(int rank) { return kValueChunks + (rank == Ranks - 1 ? 1 : 0); }
};

// Shared memory, from a multiple of 1 KB on.
template <int Ranks>
struct LatentMemory {
  using S = LatentShape<Ranks>;
  char* memory;

  __device__ char* stage(int i) const { return memory + i * S::kStageBytes; }
  __device__ char* queries() const { return stage(S::kStages); }
  __device__ char* weights(int i) const { return queries() + S::kQueryBytes + i * S::kWeightBytes; }
  __device__ char* slot(int i) const { return weights(2) + i * S::kSlotBytes; }
};

// Where the queries of a job lie: in one of two places, or in both where they need the room.
template <int Ranks>
struct LatentQueryPlaces {
  using S = LatentShape<Ranks>;
  int next = 0;
  int parities = 0;

  __device__ static bool take_both(int columns) { return columns > S::kQueries / 2; }
  __device__ int first(int columns) const { return take_both(columns) ? 0 : next; }
  __device__ int last(int columns) const { return take_both(columns) ? 1 : next; }
  __device__ int parity(int place) const { return parities >> place & 1; }
  __device__ static int offset(int place) { return place * (S::kQueryBytes / 2); }
  __device__ void advance(int columns) {
    parities ^= take_both(columns) ? 3 : 1 << next;
    if (!take_both(columns)) next ^= 1;
  }
};

// What the scorers tell about the weights of a unit.
template <int Queries>
struct LatentNote {
  float keep[Queries];  // by which the values of the split so far are rescaled
  float2
      merge[Queries];  // at the end of a split that is merged: factors of what is there and of it
  float inverse[Queries];  // at the end: what the values are multiplied by
};

template <int Ranks>
struct LatentState {
  using S = LatentShape<Ranks>;
  static constexpr int kValueWarps = 8;
  static constexpr int kScoreWarps = 4;
  uint64_t full[S::kStages], empty[S::kStages];
  uint64_t q_full[2], q_empty[2];
  uint64_t weights_full[2], weights_empty[2];
  uint64_t scores_full[S::kSlots], scores_empty[S::kSlots];
  LatentNote<S::kQueries> notes[2];
  alignas(16) float tops[2][S::kQueries][kScoreWarps];
  alignas(16) float sums[S::kQueries][kScoreWarps];
  float highest[2][S::kQueries];
  bool joins;

  // loaders: threads that tell that keys have landed.
  __device__ void init(int loaders) {
    for (int i = 0; i < S::kStages; ++i) {
      init_barrier(full + i, loaders);
      init_barrier(empty + i, kValueWarps);
    }
    for (int i = 0; i < 2; ++i) {
      init_barrier(q_full + i, 1);
      init_barrier(q_empty + i, kScoreWarps);
      init_barrier(weights_full + i, kScoreWarps);
      init_barrier(weights_empty + i, kValueWarps);
    }
    for (int i = 0; i < S::kSlots; ++i) {
      init_barrier(scores_full + i, 1);
      init_barrier(scores_empty + i, Ranks - 1);
    }
    publish_barriers();
  }
};

// Barrier of the warpgroups that compute, or of the scorers alone.
__device__ inline void sync_latent_workers() { asm volatile("bar.sync 1, 384;" ::: "memory"); }
__device__ inline void sync_latent_scorers() { asm volatile("bar.sync 2, 128;" ::: "memory"); }

// Calls work(std::integral_constant<int, N>) for the number of columns of the products.
template <class Work>
__device__ inline void for_columns(int queries, const Work& work) {
  if (queries <= 16) return work(std::integral_constant<int, 16>{});
  return work(std::integral_constant<int, 32>{});
}
__device__ inline int latent_columns(int queries) { return queries <= 16 ? 16 : 32; }

// c (+)= a * b like wgmma, but the rows of a lie side by side: 16 k of 64 columns.
template <int N>
__device__ void wgmma_columns(float (&c)[N / 2], uint64_t a, uint64_t b, bool add);

#define FT_WGMMA_COLUMNS(n, a_at, b_at, add_at)                                                 \
  template <>                                                                                   \
  __device__ inline void wgmma_columns<n>(float(&c)[n / 2], uint64_t a, uint64_t b, bool add) { \
    FT_WGMMA_SHARED(n, "k16.f32.bf16.bf16", "1, 1, 1, 0", a_at, b_at, add_at);                  \
  }

FT_WGMMA_COLUMNS(16, 8, 9, 10)
FT_WGMMA_COLUMNS(32, 16, 17, 18)

#undef FT_WGMMA_COLUMNS

}  // namespace foretoken::cuda
