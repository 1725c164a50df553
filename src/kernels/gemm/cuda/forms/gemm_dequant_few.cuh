#pragma once
#include <algorithm>

#include "kernels/cuda/tensor_map.cuh"
#include "kernels/gemm/cuda/dequant_codes.cuh"
#include "kernels/gemm/cuda/dequant_ring.cuh"
#include "kernels/gemm/cuda/gemm_common.cuh"
#include "kernels/gemm/cuda/gemm_dequant.cuh"

// For the best product of each row. One warp of a block streams the codes through a ring, one x;
// each other warp multiplies some groups of 8 rows of the weight (operand B) with all rows of x
// (operand A) by mma.sync. A chain of products is the law of the loop: what a unit of k needs is in
// registers before the unit before it is multiplied, and sums of parts wait for the next unit's
// first products.
namespace foretoken::cuda {

// Rows (8 or 16) rows of x; Groups x 8 rows of the weight a warp; stages of Units x 128 k; the
// blocks of a cluster fetch x for each other.
template <int Rows_, int Groups_, int Units_, int Cluster_, int MaxWarps_>
struct DequantShape {
  static constexpr int kRows = Rows_;
  static constexpr int kGroups = Groups_;
  static constexpr int kUnits = Units_;
  static constexpr int kCluster = Cluster_;
  static constexpr int kMaxWarps = MaxWarps_;
  static constexpr int kMaxThreads = (MaxWarps_ + 2) * 32;
  static constexpr int kAtomsX = Units_ * kUnitK / kAtomK;
  static constexpr int kAtomX = kRows * 128;
  static constexpr int kStageX = kAtomsX * kAtomX;
  static_assert((Rows_ == 8 || Rows_ == 16) && kAtomsX % Cluster_ == 0);
};

// What the host chooses for a launch.
struct DequantPlan {
  int groups;    // of 8 rows of the weight, of a block: a multiple of Shape::kGroups
  int places_w;  // of the rings
  int places_x;
};

// A lane's operands of a unit of k.
template <class Form, class Shape>
struct DequantOperands {
  using Codes = typename Form::Codes;
  static constexpr int kGroups = Shape::kGroups;
  static constexpr int kWordsX = Shape::kRows / 4;  // of a step

  uint32_t words[kGroups][Codes::kWords];
  KeptBases<Form> bases[kGroups];
  float scales[kGroups][2];  // of columns 2 t and 2 t + 1
  uint32_t x[8][kWordsX];

  // codes: the first group's unit, the others `stride` bytes apart; x: an address of this lane's
  // row in the first of two atoms of 64 k, in the 128-byte swizzle.
  __device__ void load(const uint8_t* codes, int stride, uint32_t of_x) {
    const int column = threadIdx.x % 4 * 2;
#pragma unroll
    for (int j = 0; j < kGroups; ++j) {
      const uint8_t* unit = codes + j * stride;
      load_codes(words[j], unit);
      bases[j].load(unit + Codes::kCodeBytes);
      if constexpr (Form::kScalesUnits) {
        scales[j][0] = Form::scale(unit + Codes::kCodeBytes, column);
        scales[j][1] = Form::scale(unit + Codes::kCodeBytes, column + 1);
      }
    }
#pragma unroll
    for (int step = 0; step < 8; ++step) {
      const uint32_t from = (of_x ^ (step % 4 << 5)) + step / 4 * Shape::kAtomX;
      if constexpr (Shape::kRows == 8) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                     : "=r"(x[step][0]), "=r"(x[step][1])
                     : "r"(from)
                     : "memory");
      } else {
        load_matrices(x[step], from);
      }
    }
  }
  // Where this lane's row begins in a stage of x.
  __device__ static uint32_t place_in_x() {
    const int lane = threadIdx.x % 32;
    const int row = lane % Shape::kRows, high = lane / Shape::kRows % 2;
    return row * 128 + ((high ^ (row & 7)) << 4);
  }
  // Bits of the last word of each read.
  __device__ uint32_t last_read() const {
    uint32_t bits = x[7][kWordsX - 1] | words[kGroups - 1][Codes::kWords - 1];
    bits |= bases[kGroups - 1].last_read();
    if constexpr (Form::kScalesUnits) bits |= __float_as_uint(scales[kGroups - 1][1]);
    return bits;
  }
};

template <class Form, class Shape>
struct DequantWarp {
  using Codes = typename Form::Codes;
  using Operands = DequantOperands<Form, Shape>;
  static constexpr int kGroups = Shape::kGroups;

  float sums[kGroups][4] = {};
  // With scales of units the part of the unit before, which waits for the next one's first
  // products; else the part under way.
  float part[kGroups][4] = {};
  float scales[kGroups][2] = {};
  int part_end = 0;  // of the part under way, without scales of units

  __device__ void multiply(const Operands& unit) {
    if constexpr (Form::kScalesUnits) {
      float own[kGroups][4] = {};
#pragma unroll
      for (int step = 0; step < 8; ++step) {
        multiply_step_of(own, unit, step);
        if (step == 1) add_part();
      }
      keep(own, unit);
    } else {
#pragma unroll
      for (int step = 0; step < 8; ++step) multiply_step_of(part, unit, step);
    }
  }

  // Without scales of units: unit `unit` of those along k was multiplied.
  __device__ void end_unit(int unit, int units_in_all) {
    if constexpr (!Form::kScalesUnits) {
      if (unit + 1 < units_in_all) {
        if (unit == part_end) part_end += part_units(units_in_all);
        if (unit + 1 < part_end) return;
      }
#pragma unroll
      for (int i = 0; i < kGroups * 4; ++i) {
        float& own = part[i / 4][i % 4];
        sums[i / 4][i % 4] = __fadd_rn(sums[i / 4][i % 4], own);
        own = 0;
      }
    }
  }

  __device__ static void multiply_step_of(float (&c)[kGroups][4], const Operands& unit, int step) {
    constexpr int kBaseSteps = 8 / Form::kBases;
    const uint32_t(&x)[Operands::kWordsX] = unit.x[step];
#pragma unroll
    for (int j = 0; j < kGroups; ++j) {
      uint32_t b[2];
      Codes::widen(unit.words[j], step, unit.bases[j].base(step / kBaseSteps), b);
      if constexpr (Shape::kRows == 8) {
        mma_bf16(c[j], x[0], 0, x[1], 0, b[0], b[1]);
      } else {
        mma_bf16(c[j], x[0], x[1], x[2], x[3], b[0], b[1]);
      }
    }
  }

  // One element after the other: nvcc 13.0 makes of a memcpy of scales the first group's alone.
  __device__ void keep(const float (&own)[kGroups][4], const Operands& unit) {
#pragma unroll
    for (int j = 0; j < kGroups; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) part[j][i] = own[j][i];
      scales[j][0] = unit.scales[j][0];
      scales[j][1] = unit.scales[j][1];
    }
  }

  __device__ void add_part() {
#pragma unroll
    for (int i = 0; i < kGroups * 4; ++i) {
      const int j = i / 4;
      sums[j][i % 4] = fmaf(scales[j][i % 2], part[j][i % 4], sums[j][i % 4]);
    }
  }

  // `count`: scales that there are.
  __device__ void scale_rows(const float* row_scales, int first_group, int count) {
    if (row_scales == nullptr) return;
#pragma unroll
    for (int j = 0; j < kGroups; ++j) {
      const int column = (first_group + j) * kGroupRows + threadIdx.x % 4 * 2;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        sums[j][i] *= column + i % 2 < count ? row_scales[column + i % 2] : 0.0f;
      }
    }
  }
};

template <class Form, class Shape>
struct DequantBlock {
  using Codes = typename Form::Codes;
  static constexpr int kUnit = kUnitBytes<Form>;

  const GemmArgs& args;
  const QuantizedMatrix& matrix;
  const DequantPlan& plan;
  DequantRing w;
  DequantRing x;
  int first;   // group
  int own;     // groups
  int units;   // along k
  int stages;  // along k

  __device__ DequantBlock(const GemmArgs& gemm, const QuantizedMatrix& weight,
                          const DequantPlan& launch, uint8_t* shared)
      : args(gemm),
        matrix(weight),
        plan(launch),
        w(shared + plan.places_x * Shape::kStageX, barriers(shared), plan.places_w,
          plan.groups * Shape::kUnits * kUnit),
        x(shared, barriers(shared) + 2 * plan.places_w, plan.places_x, Shape::kStageX),
        first(static_cast<int>(blockIdx.x) * plan.groups),
        own(min(plan.groups, max(ceil_div(gemm.n, kGroupRows) - first, 0))),
        units(num_units(gemm.k)),
        stages(ceil_div(units, Shape::kUnits)) {}

  __device__ uint64_t* barriers(uint8_t* shared) const {
    return reinterpret_cast<uint64_t*>(shared + plan.places_x * Shape::kStageX +
                                       plan.places_w * plan.groups * Shape::kUnits * kUnit);
  }
  __device__ int warps() const { return static_cast<int>(blockDim.x) / 32 - 2; }
  __device__ int live() const {
    return live_rows(args.counts, args.row_kind, args.row_offset, args.max_rows);
  }
  __device__ int units_of(int stage) const {
    return min(Shape::kUnits, units - stage * Shape::kUnits);
  }

  __device__ void init() const {
    w.init(warps());
    x.init(warps() * Shape::kCluster);
    publish_barriers();
  }

  __device__ void load_weight(int stage, uint64_t policy) const {
    const int bytes = units_of(stage) * kUnit;
    arrive_expecting(w.arrival(), own * bytes);
    const uint8_t* from = matrix.units + (int64_t{first} * units + stage * Shape::kUnits) * kUnit;
    for (int g = 0; g < own; ++g) {
      copy_bulk(w.here() + g * (Shape::kUnits * kUnit), from + int64_t{g} * units * kUnit, bytes,
                w.arrival(), policy);
    }
  }

  // The weight is constant, so that its ring is filled while the op before runs.
  __device__ int start_weight(uint64_t policy) {
    const int early = min(plan.places_w, stages);
    for (int stage = 0; stage < early; ++stage) {
      load_weight(stage, policy);
      w.advance();
    }
    return early;
  }
  __device__ void stream_weight(int early, uint64_t policy) {
    wait_for_previous();
    if (live() == 0) {  // what is under way must land before the block may end
      DequantRing ring = w;
      ring.place = ring.parity = 0;
      for (int stage = 0; stage < early; ++stage, ring.advance()) ring.wait_full();
      return;
    }
    for (int stage = early; stage < stages; ++stage) {
      w.wait_empty();
      load_weight(stage, policy);
      w.advance();
    }
  }

  __device__ void stream_x(const CUtensorMap& map) {
    wait_for_previous();
    if (live() == 0) return;
    constexpr int kShare = Shape::kAtomsX / Shape::kCluster;
    const int begin = Shape::kCluster == 1 ? 0 : static_cast<int>(cluster_rank()) * kShare;
    const int row = static_cast<int>(blockIdx.y) * Shape::kRows;
    for (int stage = 0; stage < stages; ++stage) {
      x.wait_empty();
      arrive_expecting(x.arrival(), Shape::kStageX);
      for (int i = begin; i < begin + kShare; ++i) {
        uint8_t* to = x.here() + i * Shape::kAtomX;
        const int column = (stage * Shape::kAtomsX + i) * kAtomK;
        if constexpr (Shape::kCluster == 1) {
          copy_box(to, &map, column, row, x.arrival());
        } else {
          copy_box_to((1 << Shape::kCluster) - 1, to, &map, column, row, x.arrival());
        }
      }
      x.advance();
    }
  }

  __device__ void release(uint32_t held) const {
    const int lane = threadIdx.x % 32;
    __syncwarp();
    if (lane == 0) w.release(held);
    if constexpr (Shape::kCluster == 1) {
      if (lane == 0) x.release(held);
    } else {
      if (lane < Shape::kCluster) x.release_at(lane, held);
    }
  }

  // Brings the operands of unit `unit` of all; the rings stand at its stage.
  __device__ void load(DequantOperands<Form, Shape>& to, const DequantRing& codes,
                       const DequantRing& rows, int group, int unit) const {
    const int u = unit % Shape::kUnits;
    if (u == 0) {
      codes.wait_full();
      rows.wait_full();
    }
    to.load(codes.here() + (group * Shape::kUnits + u) * kUnit, Shape::kUnits * kUnit,
            shared_address(rows.here()) + u * 2 * Shape::kAtomX +
                DequantOperands<Form, Shape>::place_in_x());
  }

  __device__ void multiply(DequantWarp<Form, Shape>& warp, int group) {
    const uint32_t zero = unknown_zero();
    DequantOperands<Form, Shape> now, next;
    DequantRing ahead_w = w, ahead_x = x;
    load(now, ahead_w, ahead_x, group, 0);
#pragma unroll 2
    for (int unit = 0; unit < units; ++unit) {
      const bool ends = unit % Shape::kUnits == Shape::kUnits - 1 || unit + 1 == units;
      if (ends) {
        ahead_w.advance();
        ahead_x.advance();
      }
      if (unit + 1 < units) load(next, ahead_w, ahead_x, group, unit + 1);
      warp.multiply(now);
      warp.end_unit(unit, units);
      if (ends) {
        release(now.last_read() & zero);
        w.advance();
        x.advance();
      }
      now = next;
    }
    if constexpr (Form::kScalesUnits) warp.add_part();
  }
};

template <class Form, class Shape, class Epilogue>
__global__ void __launch_bounds__(Shape::kMaxThreads, 1)
    gemm_dequant_few_kernel(const __grid_constant__ GemmArgs args,
                            const __grid_constant__ QuantizedMatrix matrix,
                            const __grid_constant__ DequantPlan plan, Epilogue epilogue,
                            const __grid_constant__ CUtensorMap x_map) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) uint8_t shared[];
  DequantBlock<Form, Shape> block(args, matrix, plan, shared);
  const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x / 32), 0);
  const int loader = block.warps();
  const uint64_t policy = evict_first_policy();
  int early = 0;
  // One lane is elected at each place, always the same, so that the compiler knows that it is one:
  // otherwise every copy becomes a loop over lanes.
  if (warp == loader && elect_lane()) {
    block.init();
    early = block.start_weight(policy);
  }
  __syncwarp();
  let_next_start();
  if constexpr (Shape::kCluster > 1) {
    __syncwarp();
    sync_cluster();
  }
  __syncthreads();
  if (warp == loader) {
    if (elect_lane()) block.stream_weight(early, policy);
  } else if (warp == loader + 1) {
    if (elect_lane()) block.stream_x(x_map);
  } else {
    wait_for_previous();
    const int live = block.live();
    if (live > 0) {
      DequantWarp<Form, Shape> own;
      block.multiply(own, warp * Shape::kGroups);
      const int group = block.first + warp * Shape::kGroups;
      own.scale_rows(matrix.row_scales, group, args.n);
      // take_rows is for warpgroups: it adds 16 rows a warp.
      const int row = static_cast<int>(blockIdx.y) * Shape::kRows - warp % 4 * 16;
      auto& c = reinterpret_cast<float(&)[Shape::kGroups * 4]>(own.sums);
      epilogue.take_rows(args, min(live, static_cast<int>(blockIdx.y + 1) * Shape::kRows), row,
                         group * kGroupRows, group / Shape::kGroups, c);
    }
  }
  if constexpr (Shape::kCluster > 1) {  // neighbours may still write to this block's memory
    __syncwarp();
    sync_cluster();
  }
#endif
}

// False when the operands do not fit.
template <class Form, class Shape, class Epilogue>
bool launch_dequant_few(const GemmArgs& args, const QuantizedMatrix& matrix, Epilogue& epilogue,
                        cudaStream_t stream) {
  constexpr int kMaxBytes = 232448, kMaxPlacesX = 6, kMaxPlacesW = 16;
  const auto kernel = gemm_dequant_few_kernel<Form, Shape, Epilogue>;
  const int groups = ceil_div(args.n, kGroupRows);
  const int most = Shape::kMaxWarps * Shape::kGroups;
  const int sms = device_traits().num_sms / Shape::kCluster * Shape::kCluster;
  const int waves = ceil_div(groups, sms * most);
  const int of_block = ceil_div(groups, sms * waves);
  DequantPlan plan{};
  plan.groups = ceil_div(of_block, Shape::kGroups) * Shape::kGroups;
  const int stage_w = plan.groups * Shape::kUnits * kUnitBytes<Form>;
  const int stages = ceil_div(num_units(args.k), Shape::kUnits);
  constexpr int kRoomX = kMaxBytes * 2 / 5;
  plan.places_x = std::min({kMaxPlacesX, stages, std::max(kRoomX / Shape::kStageX, 2)});
  const int room = kMaxBytes - plan.places_x * (Shape::kStageX + 16);
  plan.places_w = std::min({kMaxPlacesW, stages, room / (stage_w + 16)});
  if (plan.places_w < std::min(2, stages)) return false;
  const int bytes = plan.places_w * (stage_w + 16) + plan.places_x * (Shape::kStageX + 16);
  CUtensorMap map;
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) !=
          cudaSuccess ||
      !make_row_map(map, args.x, args.max_rows, args.k, Shape::kRows)) {
    return false;
  }
  set_width(epilogue, args, Shape::kGroups * kGroupRows);
  const int blocks = ceil_div(ceil_div(groups, plan.groups), Shape::kCluster) * Shape::kCluster;
  const dim3 grid(blocks, ceil_div(args.max_rows, Shape::kRows));
  const int threads = (plan.groups / Shape::kGroups + 2) * 32;
  launch_cluster(kernel, grid, Shape::kCluster, threads, bytes, stream, args, matrix, plan,
                 epilogue, map);
  return true;
}

}  // namespace foretoken::cuda
