#pragma once
#include <algorithm>
#include <utility>

#include "kernels/cuda/tensor_map.cuh"
#include "kernels/gemm/cuda/dequant_ring.cuh"
#include "kernels/gemm/cuda/forms/dequant_parts.cuh"
#include "kernels/gemm/cuda/gemm_common.cuh"
#include "kernels/gemm/cuda/gemm_dequant.cuh"

// Few rows: the time is that of reading the codes once, if enough warps widen them. Every
// multiprocessor has its share of the rows of the weight; where these are few, teams of warps take
// the parts of k in turns, each with rings of its own, and the first team adds up the parts of all
// in their order.
namespace foretoken::cuda {

// Rows (8 or 16) rows of x; stages of Units x 128 k. In a turn a team has a part, or with scales of
// units the parts of a stage.
template <class Form_, int Rows_, int Teams_, int Units_>
struct DequantTeamShape {
  using Form = Form_;
  using Warp = DequantPartWarp<Form, Rows_, Units_>;
  static constexpr int kRows = Rows_;
  static constexpr int kTeams = Teams_;
  static constexpr int kUnits = Units_;
  static constexpr int kUnit = kUnitBytes<Form>;
  static constexpr int kStageX = kUnits * 2 * Warp::kAtomX;
  static constexpr int kMaxWarps = 16;
  static constexpr int kMaxThreads = (kMaxWarps + 2) * 32;
  static constexpr int kHelpers = kTeams - 1;
  static_assert(Rows_ == 8 || Rows_ == 16);

  __host__ __device__ static TeamTurns turns(int64_t k) {
    const int units = num_units(k);
    return {units, kTeams, Form::kScalesUnits ? kUnits : part_units(units), kUnits};
  }
};

// What the host chooses for a launch: what is in a block's shared memory.
struct DequantTeamPlan {
  int pairs;     // of groups of 8 rows of the weight: warps of a team
  int places_w;  // of each team's rings
  int places_x;
};

// Where things lie: x of all teams, their codes, barriers, and parts on their way.
template <class Shape>
struct DequantTeamMemory {
  const DequantTeamPlan& plan;

  __host__ __device__ int stage_w() const { return plan.pairs * 2 * Shape::kUnits * Shape::kUnit; }
  __host__ __device__ int bytes_x() const { return Shape::kTeams * plan.places_x * Shape::kStageX; }
  __host__ __device__ int bytes_w() const { return Shape::kTeams * plan.places_w * stage_w(); }
  __host__ __device__ int slots() const { return plan.pairs * Shape::kHelpers * 2; }
  __host__ __device__ int barriers() const {
    return 2 * (Shape::kTeams * (plan.places_x + plan.places_w) + slots());
  }
  __host__ __device__ int bytes() const {
    return bytes_x() + bytes_w() + barriers() * 8 + slots() * Shape::Warp::kFloats * 32 * 4;
  }

  __device__ DequantRing x(uint8_t* shared, int team) const {
    return {shared + team * plan.places_x * Shape::kStageX,
            first_barrier(shared) + 2 * team * plan.places_x, plan.places_x, Shape::kStageX};
  }
  __device__ DequantRing w(uint8_t* shared, int team) const {
    return {shared + bytes_x() + team * plan.places_w * stage_w(),
            first_barrier(shared) + 2 * (Shape::kTeams * plan.places_x + team * plan.places_w),
            plan.places_w, stage_w()};
  }
  // Two places for the parts of a warp of a team but the first.
  __device__ DequantRing parts(uint8_t* shared, int team, int pair) const {
    constexpr int kBytes = Shape::Warp::kFloats * 32 * 4;
    const int at = (pair * Shape::kHelpers + team - 1) * 2;
    uint64_t* first = first_barrier(shared);
    auto* memory = reinterpret_cast<uint8_t*>(first + barriers());
    return {memory + at * kBytes,
            first + 2 * (Shape::kTeams * (plan.places_x + plan.places_w) + at), 2, kBytes};
  }

 private:
  __device__ uint64_t* first_barrier(uint8_t* shared) const {
    return reinterpret_cast<uint64_t*>(shared + bytes_x() + bytes_w());
  }
};

template <class Shape>
struct DequantTeamBlock {
  using Warp = typename Shape::Warp;

  const GemmArgs& args;
  const QuantizedMatrix& matrix;
  DequantTeamMemory<Shape> memory;
  uint8_t* shared;
  int first;  // group
  int own;    // groups
  TeamTurns turns;

  __device__ DequantTeamBlock(const GemmArgs& gemm, const QuantizedMatrix& weight,
                              const DequantTeamPlan& plan, uint8_t* bytes)
      : args(gemm),
        matrix(weight),
        memory{plan},
        shared(bytes),
        first(static_cast<int>(blockIdx.x) * plan.pairs * 2),
        own(min(plan.pairs * 2, max(ceil_div(gemm.n, kGroupRows) - first, 0))),
        turns(Shape::turns(gemm.k)) {}

  __device__ int live() const {
    return live_rows(args.counts, args.row_kind, args.row_offset, args.max_rows);
  }

  __device__ void init() const {
    for (int team = 0; team < Shape::kTeams; ++team) {
      memory.x(shared, team).init(memory.plan.pairs);
      memory.w(shared, team).init(memory.plan.pairs);
      if (team == 0) continue;
      for (int pair = 0; pair < memory.plan.pairs; ++pair) memory.parts(shared, team, pair).init(1);
    }
    publish_barriers();
  }

  __device__ void load_weight(const DequantRing& to, int unit, int count, uint64_t policy) const {
    const int bytes = count * Shape::kUnit;
    arrive_expecting(to.arrival(), own * bytes);
    const uint8_t* from = matrix.units + (int64_t{first} * turns.units + unit) * Shape::kUnit;
    for (int g = 0; g < own; ++g) {
      copy_bulk(to.here() + g * (Shape::kUnits * Shape::kUnit),
                from + int64_t{g} * turns.units * Shape::kUnit, bytes, to.arrival(), policy);
    }
  }

  // One thread. The weight is constant, so that its rings are filled while the op before runs.
  __device__ void stream_weight(uint64_t policy) const {
    DequantRing at = memory.w(shared, 0);  // the place, which is the same in all
    int stages = 0;
    for (TeamStage stage; turns.units_of(0, stage) > 0; stage = turns.after(stage), ++stages) {
      if (stages == at.places && no_rows()) break;
      for (int team = 0; team < Shape::kTeams; ++team) {
        const int count = turns.units_of(team, stage);
        if (count <= 0) break;
        DequantRing ring = memory.w(shared, team);
        ring.place = at.place;
        ring.parity = at.parity;
        ring.wait_empty();
        load_weight(ring, turns.unit_of(team, stage), count, policy);
      }
      at.advance();
    }
    if (no_rows()) drain(min(stages, at.places));
  }
  __device__ bool no_rows() const {
    wait_for_previous();
    return live() == 0;
  }
  // What is under way must land before the block may end.
  __device__ void drain(int stages) const {
    for (int team = 0; team < Shape::kTeams; ++team) {
      DequantRing ring = memory.w(shared, team);
      TeamStage stage;
      for (int i = 0; i < stages && turns.units_of(team, stage) > 0; ++i, ring.advance()) {
        ring.wait_full();
        stage = turns.after(stage);
      }
    }
  }

  __device__ void stream_x(const CUtensorMap& map) const {
    if (no_rows()) return;
    DequantRing at = memory.x(shared, 0);
    for (TeamStage stage; turns.units_of(0, stage) > 0; stage = turns.after(stage)) {
      for (int team = 0; team < Shape::kTeams; ++team) {
        if (turns.units_of(team, stage) <= 0) break;
        DequantRing ring = memory.x(shared, team);
        ring.place = at.place;
        ring.parity = at.parity;
        ring.wait_empty();
        load_x(ring, turns.unit_of(team, stage), map);
      }
      at.advance();
    }
  }
  __device__ void load_x(const DequantRing& to, int unit, const CUtensorMap& map) const {
    arrive_expecting(to.arrival(), Shape::kStageX);
#pragma unroll
    for (int i = 0; i < Shape::kUnits * 2; ++i) {
      copy_box(to.here() + i * Warp::kAtomX, &map, (unit * 2 + i) * kAtomK,
               static_cast<int>(blockIdx.y) * Shape::kRows, to.arrival());
    }
  }

  // A warp: its parts. Those of the first team add up the parts of all, the others' a turn later.
  __device__ void multiply(Warp& warp, int team, int pair) const {
    DequantRing w = memory.w(shared, team), x = memory.x(shared, team);
    const uint32_t zero = unknown_zero();
    int turn = 0;
    for (; turns.units_of(team, {turn, 0}) > 0; ++turn) {
      warp.clear();
      for (int i = 0; i < turns.turn_stages; ++i) {
        const int count = turns.units_of(team, {turn, i});
        if (count <= 0) break;
        multiply_stage(warp, w, x, pair, count);
        __syncwarp();
        if (threadIdx.x % 32 == 0) {
          w.release(warp.last_read & zero);
          x.release(warp.last_read & zero);
        }
        w.advance();
        x.advance();
      }
      if (team > 0) {
        leave(warp, team, pair, turn);
      } else {
        if (turn > 0) take(warp, pair, turn - 1);
        warp.add();
      }
    }
    if (team == 0) take(warp, pair, turn - 1);
  }
  __device__ static void multiply_stage(Warp& warp, const DequantRing& w, const DequantRing& x,
                                        int pair, int count) {
    w.wait_full();
    x.wait_full();
    const uint8_t* codes = w.here() + pair * 2 * (Shape::kUnits * Shape::kUnit);
    const uint32_t of_x = shared_address(x.here());
    const auto multiply_unit = [&]<int Unit>() {
      if (Unit >= count) return;
      warp.template multiply<Unit>(codes + Unit * Shape::kUnit, Shape::kUnits * Shape::kUnit,
                                   of_x + Unit * 2 * Warp::kAtomX);
    };
    [&]<int... Unit>(std::integer_sequence<int, Unit...>) {
      (multiply_unit.template operator()<Unit>(), ...);
    }(std::make_integer_sequence<int, Shape::kUnits>());
  }

  __device__ DequantRing parts_at(int team, int pair, int turn) const {
    DequantRing ring = memory.parts(shared, team, pair);
    ring.place = turn % 2;
    ring.parity = turn / 2 % 2;
    return ring;
  }
  __device__ void leave(const Warp& warp, int team, int pair, int turn) const {
    const DequantRing to = parts_at(team, pair, turn);
    to.wait_empty();
    warp.put(reinterpret_cast<float*>(to.here()));
    __syncwarp();
    if (threadIdx.x % 32 == 0) arrive(to.arrival());
  }
  __device__ void take(Warp& warp, int pair, int turn) const {
#pragma unroll
    for (int team = 1; team < Shape::kTeams; ++team) {
      if (turns.units_of(team, {turn, 0}) <= 0) return;
      const DequantRing from = parts_at(team, pair, turn);
      from.wait_full();
      warp.add_from(reinterpret_cast<const float*>(from.here()));
      __syncwarp();
      if (threadIdx.x % 32 == 0) from.release(0);
    }
  }
};

template <class Shape, class Epilogue>
__global__ void __launch_bounds__(Shape::kMaxThreads, 1)
    gemm_dequant_teams_kernel(const __grid_constant__ GemmArgs args,
                              const __grid_constant__ QuantizedMatrix matrix,
                              const __grid_constant__ DequantTeamPlan plan, Epilogue epilogue,
                              const __grid_constant__ CUtensorMap x_map) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) uint8_t shared[];
  const DequantTeamBlock<Shape> block(args, matrix, plan, shared);
  const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x / 32), 0);
  const int loader = plan.pairs * Shape::kTeams;
  // One lane is elected at each place, so that the compiler knows that it is one: otherwise every
  // copy becomes a loop over lanes.
  if (warp == loader && elect_lane()) block.init();
  __syncwarp();
  let_next_start();
  __syncthreads();
  if (warp == loader) {
    if (elect_lane()) block.stream_weight(evict_first_policy());
  } else if (warp == loader + 1) {
    if (elect_lane()) block.stream_x(x_map);
  } else {
    wait_for_previous();
    const int live = block.live();
    if (live == 0) return;
    const int team = warp / plan.pairs, pair = warp - team * plan.pairs;
    typename Shape::Warp own;
    block.multiply(own, team, pair);
    if (team > 0) return;
    const int n = (block.first + pair * 2) * kGroupRows;
    own.scale_rows(matrix.row_scales, n, args.n);
    const int row = static_cast<int>(blockIdx.y) * Shape::kRows;
    auto& tiles = reinterpret_cast<const float(&)[1][Shape::kRows / 8][4]>(own.sums);
    epilogue.take_tiles(args, min(live, row + Shape::kRows), row, n, n / kTileN, tiles);
  }
#endif
}

// As many places as there is room for; false: not one, or too many warps.
template <class Shape>
bool plan_teams(const GemmArgs& args, DequantTeamPlan& plan) {
  constexpr int kMaxBytes = 232448, kMaxPlaces = 16;
  plan.pairs = ceil_div(ceil_div(args.n, kTileN), device_traits().num_sms);
  if (plan.pairs * Shape::kTeams > Shape::kMaxWarps) return false;
  const int stages = Shape::turns(args.k).stages();
  plan.places_x = plan.places_w = std::min(2, stages);
  const auto bytes = [](const DequantTeamPlan& of) { return DequantTeamMemory<Shape>{of}.bytes(); };
  if (bytes(plan) > kMaxBytes) return false;
  while (plan.places_w < std::min(stages, kMaxPlaces)) {
    DequantTeamPlan more = plan;
    ++more.places_w;
    if (more.places_w > 2 * more.places_x) ++more.places_x;
    if (bytes(more) > kMaxBytes) break;
    plan = more;
  }
  return true;
}

// False when the operands do not fit.
template <class Shape, class Epilogue>
bool launch_dequant_teams(const GemmArgs& args, const QuantizedMatrix& matrix, Epilogue& epilogue,
                          cudaStream_t stream) {
  const auto kernel = gemm_dequant_teams_kernel<Shape, Epilogue>;
  DequantTeamPlan plan{};
  if (!plan_teams<Shape>(args, plan)) return false;
  const int bytes = DequantTeamMemory<Shape>{plan}.bytes();
  CUtensorMap map;
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) !=
          cudaSuccess ||
      !make_row_map(map, args.x, args.max_rows, args.k, Shape::kRows)) {
    return false;
  }
  const dim3 grid(ceil_div(ceil_div(args.n, kTileN), plan.pairs),
                  ceil_div(args.max_rows, Shape::kRows));
  launch_cluster(kernel, grid, 1, (plan.pairs * Shape::kTeams + 2) * 32, bytes, stream, args,
                 matrix, plan, epilogue, map);
  return true;
}

}  // namespace foretoken::cuda
