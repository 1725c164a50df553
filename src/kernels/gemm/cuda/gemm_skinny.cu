#include "kernels/gemm/cuda/gemm_common.cuh"

namespace foretoken::cuda {
namespace {

// Few rows: the time is that of reading the weight once. Every warp is a block of its own that
// streams WTiles x 16 weight rows through a ring in shared memory, so that no barrier of several
// warps is needed and tens of kilobytes a multiprocessor are always under way.
constexpr int kAtomsPerStage = 2;
constexpr int kSteps = kAtomK / 16;  // products along an atom

// XTiles: groups of 8 rows of x.
template <int WTiles, int XTiles>
struct Fragments {
  uint32_t w[kAtomsPerStage][kSteps][WTiles][4];
  uint32_t x[kAtomsPerStage][kSteps][XTiles][2];

  // Atoms beyond k are zero: they change no bit and cost no branch between the products.
  __device__ void multiply(float (&c)[WTiles][XTiles][4], int atom, int step) const {
#pragma unroll
    for (int i = 0; i < WTiles; ++i) {
#pragma unroll
      for (int j = 0; j < XTiles; ++j) {
        multiply_step(c[i][j], w[atom][step][i], x[atom][step][j][0], x[atom][step][j][1]);
      }
    }
  }
};

template <int WTiles, int XTiles, int Stages>
struct Ring {
  static constexpr int kChunks = (WTiles * 2 + XTiles) * kAtomChunks;  // along an atom
  static constexpr int kStageChunks = kAtomsPerStage * kChunks;
  static constexpr int kBytes = Stages * kStageChunks * 16;

  uint4* chunks;
  const uint4* weight;
  const __nv_bfloat16* x;
  int max_rows;
  int num_groups;
  int num_k_atoms;
  int k;

  __device__ uint4* slot(int stage, int atom) const {
    return chunks + stage % Stages * kStageChunks + atom * kChunks;
  }
  __device__ uint4* x_slot(int stage, int atom) const {
    return slot(stage, atom) + WTiles * 2 * kAtomChunks;
  }

  __device__ void load_weight(int stage, int a) const {
    const int lane = threadIdx.x;
    const int atom = stage * kAtomsPerStage + a;
#pragma unroll
    for (int group = 0; group < WTiles * 2; ++group) {
      const bool valid = atom < num_k_atoms && group < num_groups;
      const uint4* from = weight + (valid ? atom + group * num_k_atoms : 0) * kAtomChunks + lane;
      uint4* to = slot(stage, a) + group * kAtomChunks + lane;
      copy16_async(to, from, valid);
      copy16_async(to + 32, from + 32, valid);
    }
  }

  __device__ void load_x(int stage, int a) const {
    const int c = threadIdx.x % 8;
    const int column = (stage * kAtomsPerStage + a) * kAtomK + c * 8;
    const bool valid = column < k;
#pragma unroll
    for (int i = 0; i < XTiles * 2; ++i) {
      const int row = i * 4 + static_cast<int>(threadIdx.x) / 8;
      copy16_async_l1(x_slot(stage, a) + row / 8 * kAtomChunks + atom_chunk(row % 8, c),
                      x + int64_t{min(row, max_rows - 1)} * k + (valid ? column : 0), valid);
    }
  }

  __device__ void read(Fragments<WTiles, XTiles>& to, int stage, int a) const {
    const int matrix = threadIdx.x / 8;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int i = 0; i < WTiles; ++i) {
        load_weight_step(to.w[a][step][i], slot(stage, a) + i * 2 * kAtomChunks, kAtomChunks, step);
      }
    }
#pragma unroll
    for (int pair = 0; pair < kSteps * XTiles / 2; ++pair) {
      const int at = pair * 2 + matrix / 2;
      const uint4* from = x_slot(stage, a) + at % XTiles * kAtomChunks +
                          atom_chunk(threadIdx.x % 8, at / XTiles * 2 + matrix % 2);
      uint32_t b[4];
      load_matrices(b, shared_address(from));
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int to_at = pair * 2 + i;
        to.x[a][to_at / XTiles][to_at % XTiles][0] = b[i * 2];
        to.x[a][to_at / XTiles][to_at % XTiles][1] = b[i * 2 + 1];
      }
    }
  }
};

template <int WTiles, int XTiles, int Stages, class Epilogue>
__global__ void __launch_bounds__(32) gemm_skinny_kernel(GemmArgs args, Epilogue epilogue) {
  extern __shared__ uint4 shared[];
  const int first_group = static_cast<int>(blockIdx.x) * WTiles * 2;
  const int num_k_atoms = num_atoms(args.k);
  const Ring<WTiles, XTiles, Stages> ring{
      shared,
      static_cast<const uint4*>(args.weight) + int64_t{first_group} * num_k_atoms * kAtomChunks,
      static_cast<const __nv_bfloat16*>(args.x),
      args.max_rows,
      ceil_div(args.n, kGroupRows) - first_group,
      num_k_atoms,
      args.k};
  // The weight is constant: its first part is fetched while the op before still runs.
#pragma unroll 1
  for (int stage = 0; stage < Stages - 1; ++stage) {
    for (int b = 0; b < kAtomsPerStage; ++b) ring.load_weight(stage, b);
  }
  wait_for_previous(args.frees_next != 0);
  const int live = live_rows(args.counts, args.row_kind, args.row_offset, args.max_rows);
  if (live == 0) {
    wait_copies<0>();
    return;
  }
#pragma unroll 1
  for (int stage = 0; stage < Stages - 1; ++stage) {
    for (int b = 0; b < kAtomsPerStage; ++b) ring.load_x(stage, b);
    commit_copies();
  }
  float c[WTiles][XTiles][4] = {};
  Fragments<WTiles, XTiles> now;
  Fragments<WTiles, XTiles> next;
  wait_copies<Stages - 2>();
  __syncwarp();
#pragma unroll
  for (int b = 0; b < kAtomsPerStage; ++b) ring.read(now, 0, b);
  const int num_stages = ceil_div(num_k_atoms, kAtomsPerStage);
#pragma unroll 2
  for (int stage = 0; stage < num_stages; ++stage) {
    // The copies go to the place of stage - 1, which was read into registers before its products.
    // They and the reads are issued between the products, each of which waits for the one before.
    wait_copies<Stages - 3>();
    __syncwarp();
#pragma unroll
    for (int b = 0; b < kAtomsPerStage; ++b) {
#pragma unroll
      for (int step = 0; step < kSteps; ++step) now.multiply(c, b, step);
      ring.load_weight(stage + Stages - 1, b);
      ring.load_x(stage + Stages - 1, b);
      ring.read(next, stage + 1, b);
    }
    commit_copies();
    now = next;
  }
  wait_copies<0>();
  epilogue.take_tiles(args, live, 0, first_group * kGroupRows, static_cast<int>(blockIdx.x), c);
}

template <int WTiles, int XTiles, int Stages, class Epilogue>
void launch(const GemmArgs& args, Epilogue& epilogue, cudaStream_t stream) {
  constexpr int kBytes = Ring<WTiles, XTiles, Stages>::kBytes;
  const auto kernel = gemm_skinny_kernel<WTiles, XTiles, Stages, Epilogue>;
  const cudaError_t raised =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (raised != cudaSuccess) return;
  set_width(epilogue, args, kTileN * WTiles);
  launch_kernel(kernel, ceil_div(args.n, kTileN * WTiles), 32, kBytes, stream, args, epilogue);
}

// The fewer warps a multiprocessor gets, the deeper each one's ring is: no more fit than an even
// spread needs, so that early blocks do not crowd on some multiprocessors. Wide matrices with many
// rows of x take two tiles a warp, which halves the traffic of x.
template <int XTiles, class Epilogue>
void launch_for_width(const GemmArgs& args, Epilogue& epilogue, cudaStream_t stream) {
  const int warps_per_sm = ceil_div(ceil_div(args.n, kTileN), device_traits().num_sms);
  if (warps_per_sm <= 2) {
    launch<1, XTiles, XTiles == 1 ? 16 : 12>(args, epilogue, stream);
  } else if (warps_per_sm <= 4) {
    launch<1, XTiles, XTiles == 1 ? 11 : 8>(args, epilogue, stream);
  } else {
    launch<XTiles, XTiles, 4>(args, epilogue, stream);
  }
}

}  // namespace

void launch_gemm_skinny(const GemmArgs& args, cudaStream_t stream) {
  with_store(args, [&](const GemmArgs& all, auto& epilogue) {
    launch_for_width<1>(all, epilogue, stream);
  });
}

void launch_gemm_skinny(const GemmArgs& args, KeepBest& best, cudaStream_t stream) {
  launch_for_width<1>(args, best, stream);
}

}  // namespace foretoken::cuda
