#pragma once
#include "kernels/experts/cuda/expert_rings.cuh"

// How weights and rows of x come into the rings of expert_stream.cuh.
namespace foretoken::cuda {

// A thread of each of some warps: they bring the weights, every stage together.
template <class Shape>
class ExpertWeightLoader {
 public:
  using Units = typename Shape::Units;

  // warp: of these.
  __device__ ExpertWeightLoader(const ExpertGemmArgs& args, const ExpertScales& scales,
                                const ExpertRings<Shape>& rings, int warp)
      : args_(args), scales_(scales), ring_(rings.w), warp_(warp), parts(args) {
    policy_ = Shape::kTiled ? evict_normal_policy() : evict_first_policy();
  }

  // As many stages as may be on their way of what is known now.
  __device__ void start() {
    while (under_way_ < Shape::kInFlight && next_stage()) load();
  }
  __device__ void run() {
    while (next_stage()) load();
  }
  // What is under way must land before the block may end.
  __device__ void drop() {
    for (; under_way_ > 0; --under_way_) land();
  }

 private:
  __device__ bool next_stage() {
    if (stage_ < num_stages_) return true;
    ExpertPart part;
    if (!parts.next(part)) return false;
    const ExpertMatrix<Units> matrix(args_, part.expert);
    group_bytes_ = matrix.group_bytes();
    groups_ = part.num_pairs * 2;
    from_ = matrix.weight + part.first_pair * 2 * group_bytes_;
    if constexpr (Units::kScaleW > 0) {
      unit_scales_ =
          scales_.of_units + int64_t{part.expert} * args_.n + part.first_pair * kPairRows;
    }
    units_ = matrix.units;
    num_stages_ = ceil_div(units_, Shape::kUnits);
    stage_ = 0;
    return true;
  }

  __device__ void land() {
    ring_.wait_full(landed_);
    landed_.advance();
  }

  __device__ void load() {
    if (under_way_ == Shape::kInFlight) {
      land();
    } else {
      ++under_way_;
    }
    ring_.wait_empty(at_);
    const int count = min(Shape::kUnits, units_ - stage_ * Shape::kUnits);
    const int bytes = count * Units::kUnitBytes;
    uint64_t* barrier = ring_.full + at_.place;
    constexpr int kWarps = Shape::kWarpsW;
    const int warp = kWarps == 1 ? 0 : warp_;
    const int scales = Units::kScaleW > 0 && warp == 0 ? groups_ * kGroupRows * Units::kScaleW : 0;
    arrive_expecting(barrier, (groups_ + kWarps - 1 - warp) / kWarps * bytes + count * scales);
    uint8_t* to = ring_.at(at_) + warp * Shape::kGroupBytes;
    const uint8_t* from = from_ + warp * group_bytes_;
#pragma unroll
    for (int i = 0; i < Shape::kGroups; i += kWarps) {
      if (i + warp < groups_) {
        copy_bulk(to + i * Shape::kGroupBytes, from + i * group_bytes_, bytes, barrier, policy_);
      }
    }
    if constexpr (Units::kScaleW > 0) {
      for (int i = 0; scales > 0 && i < count; ++i) {
        copy_bulk(ring_.at(at_) + Shape::kCodesW + i * Shape::kScalesW,
                  unit_scales_ + int64_t{stage_ * Shape::kUnits + i} * scales_.w_stride, scales,
                  barrier, policy_);
      }
    }
    from_ += Shape::kGroupBytes;
    ++stage_;
    at_.advance();
  }

  const ExpertGemmArgs& args_;
  const ExpertScales& scales_;
  const ExpertRing<Shape::kStagesW, Shape::kStageW>& ring_;
  const int warp_;
  uint64_t policy_;
  const uint8_t* from_ = nullptr;
  const float* unit_scales_ = nullptr;  // of the part's first unit
  int64_t group_bytes_ = 0;
  int groups_ = 0, units_ = 0, stage_ = 0, num_stages_ = 0, under_way_ = 0;
  RingPlace<Shape::kStagesW> at_, landed_;

 public:
  PartsOf<Shape> parts;
};

// Some warps: bring the rows of x that entries name, in the swizzle of operands.
template <class Shape>
struct ExpertRowLoader {
  using Units = typename Shape::Units;
  const ExpertGemmArgs& args;
  const ExpertScales& scales;
  const ExpertRings<Shape>& rings;
  int warp;  // of these
  RingPlace<Shape::kStagesX> at{};

  static constexpr int kRowsAtOnce = Shape::kWarpsX * 4;
  static constexpr int kRows = ceil_div(Shape::kEntries, kRowsAtOnce);  // of a thread

  __device__ void run(PartsOf<Shape>& parts) {
    ExpertPart part;
    while (parts.next(part)) {
      const ExpertMatrix<Units> matrix(args, part.expert);
      uint32_t from[kRows];
      find_rows(part, matrix, from);
      const int stages = ceil_div(matrix.units, Shape::kUnits);
      for (int stage = 0; stage < stages; ++stage) {
        rings.x.wait_empty(at);
        if (Units::kScaleX > 0 || args.x_scales == nullptr || part.expert == kSharedExpert) {
          load(matrix, stage * Shape::kStageK, part.num_entries, from);
          if constexpr (Units::kScaleX > 0) load_scales(matrix, stage, part.num_entries, from);
          arrive_after_copies(rings.x.full + at.place);
        } else {
          load_scaled(matrix, stage * Shape::kStageK, part, from);
          arrive(rings.x.full + at.place);
        }
        at.advance();
      }
    }
  }

 private:
  __device__ int first_row() const { return warp * 4 + static_cast<int>(threadIdx.x) % 32 / 8; }

  // Where the rows begin that this thread brings 16 bytes of at a time, in 16 bytes.
  __device__ void find_rows(const ExpertPart& part,
                            const ExpertMatrix<typename Shape::Units>& matrix,
                            uint32_t (&from)[kRows]) const {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int r = first_row() + i * kRowsAtOnce;
      uint32_t row = 0;
      if (r < part.num_entries) {
        row = part.first_entry + r;
        if (part.expert != kSharedExpert) row = args.lists.entries[row];
        if (matrix.by_choice) row /= args.lists.top_k;
      }
      from[i] = row * (matrix.k / 8);
    }
  }

  // What lies behind k is zero; the places of entries that are none keep what they had.
  // use(place, row number of this thread, where it comes from, whether that is in k).
  template <class Use>
  __device__ void for_chunks(const ExpertMatrix<typename Shape::Units>& matrix, int first_k,
                             int entries, const uint32_t (&from)[kRows], const Use& use) const {
    const int chunk = static_cast<int>(threadIdx.x) % 8;
    const auto* x = reinterpret_cast<const uint4*>(matrix.x);
#pragma unroll
    for (int atom = 0; atom < Shape::kStageK / kAtomK; ++atom) {
      const int k = first_k + atom * kAtomK + chunk * 8;
      const bool valid = k < matrix.k;
      const uint32_t column = valid ? k / 8 : 0;
      uint8_t* to = rings.x.at(at) + atom * Shape::kAtomBytesX;
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const int r = first_row() + i * kRowsAtOnce;
        if (r >= entries) break;
        use(to + r / 8 * kAtomBytes + atom_chunk(r % 8, chunk) * 16, r, x + (from[i] + column),
            valid);
      }
    }
  }

  __device__ void load(const ExpertMatrix<typename Shape::Units>& matrix, int first_k, int entries,
                       const uint32_t (&from)[kRows]) const {
    for_chunks(
        matrix, first_k, entries, from,
        [](uint8_t* to, int, const uint4* source, bool valid) { copy16_async(to, source, valid); });
  }

  // A thread brings those of its rows for one unit of the stage.
  __device__ void load_scales(const ExpertMatrix<Units>& matrix, int stage, int entries,
                              const uint32_t (&from)[kRows]) const {
    const int own = static_cast<int>(threadIdx.x) % 8;
    const int unit = stage * Shape::kUnits + own;
    if (own >= Shape::kUnits || unit >= matrix.units) return;
    const float* source = scales.of_x + int64_t{unit} * scales.x_stride;
    auto* to = reinterpret_cast<float*>(rings.x.at(at) + Shape::kCodesX + own * Shape::kScalesX);
    const auto chunks = static_cast<uint32_t>(matrix.k / 8);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int r = first_row() + i * kRowsAtOnce;
      if (r >= entries) break;
      copy4_async(to + r, source + from[i] / chunks);
    }
  }

  __device__ void load_scaled(const ExpertMatrix<typename Shape::Units>& matrix, int first_k,
                              const ExpertPart& part, const uint32_t (&from)[kRows]) const {
    const int32_t* entries = args.lists.entries + part.first_entry;
    for_chunks(matrix, first_k, part.num_entries, from,
               [&](uint8_t* to, int r, const uint4* source, bool valid) {
                 const float scale = args.x_scales[entries[r]];
                 *reinterpret_cast<uint4*>(to) = valid ? scaled_chunk(*source, scale) : uint4{};
               });
  }
};

}  // namespace foretoken::cuda
