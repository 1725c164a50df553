#include <array>
#include <cmath>
#include <numeric>

#include "kernels/experts/expert_gemm.h"
#include "kernels/experts/route_experts.h"
#include "support/row_ops.h"

namespace foretoken {
namespace {

// What all rows share, computed while rows are routed (ExpertGemmArgs::rows_are_old), has the bits
// that it has behind routing, and so do the experts' products.
class ExpertGemmBesideTest : public RowOpTest, public testing::WithParamInterface<DType> {
 protected:
  static constexpr int kExperts = 24, kTopK = 4, kInner = 96, kHidden = 320, kSharedInner = 160;
  static constexpr int kMaxRows = 300;

  void SetUp() override {
    RowOpTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    router_ = pack(kExperts, kHidden, WeightOrder::kPlain, 0, 1);
    gate_up_ = pack(2 * kExperts * kInner, kHidden, WeightOrder::kGateUp, kInner, 2);
    down_ = pack(kExperts * kHidden, kInner, WeightOrder::kPlain, kHidden, 3);
    shared_gate_up_ = pack(2 * kSharedInner, kHidden, WeightOrder::kGateUp, 0, 4);
    shared_down_ = pack(kHidden, kSharedInner, WeightOrder::kPlain, 0, 5);
    x_ = typed_data(random_floats(size_t{kMaxRows} * kHidden, 6), GetParam());
  }
  void TearDown() override {
    if (!weights_.empty()) drain();
    for (void* weight : weights_) device().free_weight(weight);
    RowOpTest::TearDown();
  }

  void* pack(int rows, int k, WeightOrder order, int64_t unit_rows, uint64_t seed) {
    const auto values = random_floats(size_t(rows) * size_t(k), seed, 1 / std::sqrt(float(k)));
    const TypedData data = typed_data(values, GetParam());
    const std::array<WeightPart, 1> part = {{{data.data(), rows}}};
    void* packed = unit_rows > 0 ? device().pack_weight(part, k, GetParam(), order, unit_rows)
                                 : device().pack_weight(part, k, GetParam(), order);
    EXPECT_NE(packed, nullptr);
    weights_.push_back(packed);
    return packed;
  }

  template <class T>
  T* room(int count) {
    return reinterpret_cast<T*>(marked(size_t(count) * sizeof(T)));
  }
  void* act_room(int count) { return marked(size_t(count) * dtype_size(GetParam())); }

  // What a mixture leaves before its sum.
  struct Left {
    std::vector<uint8_t> gated, products, shared_gated, shared_out;
    bool operator==(const Left&) const = default;
  };

  Left run(int rows, bool beside) {
    const StepCounts* step = counts(rows);
    const size_t x_bytes = size_t(rows) * kHidden * dtype_size(GetParam());
    const void* x =
        to_device(std::vector(x_.bytes.begin(), x_.bytes.begin() + std::ptrdiff_t(x_bytes)));
    const RouteExpertsArgs routing = routing_of(step, rows);
    ExpertGemmArgs first{.counts = step,
                         .x = x,
                         .weight = gate_up_,
                         .y = act_room(rows * kTopK * kInner),
                         .bias = nullptr,
                         .x_scales = nullptr,
                         .lists = routing.lists,
                         .max_rows = rows,
                         .n = 2 * kInner,
                         .k = kHidden,
                         .dtype = GetParam(),
                         .gated = 1,
                         .shared = {x, shared_gate_up_, act_room(rows * kSharedInner), nullptr,
                                    2 * kSharedInner, kHidden},
                         .rows_are_old = beside ? 1 : 0,
                         .next_shared = beside ? shared_down_ : nullptr,
                         .next_n = kHidden,
                         .next_k = kSharedInner};
    const ExpertGemmArgs last = last_of(first, rows, beside);
    gemm(queue(), router_of(step, x, rows, const_cast<float*>(routing.logits)));
    route_experts(queue(), routing);
    expert_gemm(queue(), first);
    expert_gemm(queue(), last);
    const auto act_bytes = [](int count) { return size_t(count) * dtype_size(GetParam()); };
    return {read(static_cast<uint8_t*>(first.y), act_bytes(rows * kTopK * kInner)),
            read(static_cast<uint8_t*>(last.y), act_bytes(rows * kTopK * kHidden)),
            read(static_cast<uint8_t*>(first.shared.y), act_bytes(rows * kSharedInner)),
            read(static_cast<uint8_t*>(last.shared.y), size_t(rows * kHidden) * sizeof(float))};
  }

 private:
  GemmArgs router_of(const StepCounts* step, const void* x, int rows, float* logits) const {
    return {.counts = step,
            .x = x,
            .weight = router_,
            .y = logits,
            .bias = nullptr,
            .row_kind = RowKind::kToken,
            .row_offset = 0,
            .max_rows = rows,
            .n = kExperts,
            .k = kHidden,
            .dtype = GetParam(),
            .out_dtype = DType::kF32,
            .frees_next = 1};
  }

  RouteExpertsArgs routing_of(const StepCounts* step, int rows) {
    RouteExpertsArgs args{};
    args.counts = step;
    args.logits = room<float>(rows * kExperts);
    args.ids = room<int32_t>(rows * kTopK);
    args.weights = room<float>(rows * kTopK);
    args.lists = {room<int32_t>(kExperts + 1), room<int32_t>(rows * kTopK), kExperts, kTopK};
    args.num_experts = kExperts;
    args.max_rows = rows;
    args.score = ExpertScore::kSigmoid;
    return args;
  }

  ExpertGemmArgs last_of(const ExpertGemmArgs& first, int rows, bool knows_lists) {
    ExpertGemmArgs last = first;
    last.x = first.y;
    last.weight = down_;
    last.y = act_room(rows * kTopK * kHidden);
    last.n = kHidden;
    last.k = kInner;
    last.by_entry = 1;
    last.gated = 0;
    last.shared = {first.shared.y, shared_down_, room<float>(rows * kHidden),
                   nullptr,        kHidden,      kSharedInner};
    last.lists_are_old = knows_lists ? 1 : 0;
    last.rows_are_old = 0;
    last.next_shared = nullptr;
    return last;
  }

  void *router_ = nullptr, *gate_up_ = nullptr, *down_ = nullptr;
  void *shared_gate_up_ = nullptr, *shared_down_ = nullptr;
  std::vector<void*> weights_;
  TypedData x_;
};

TEST_P(ExpertGemmBesideTest, HasTheBitsThatItHasBehindRouting) {
  for (const int rows : {1, 2, 3, 7, 8, 9, 16, 17, 33, 64, 65, 129, kMaxRows}) {
    const Left behind = run(rows, false);
    for (int round = 0; round < 3; ++round) {
      ASSERT_TRUE(run(rows, true) == behind) << rows << " rows, round " << round;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ExpertGemmBesideTest, testing::Values(DType::kBF16, DType::kF32),
                         [](const auto& test) { return std::string(dtype_name(test.param)); });

}  // namespace
}  // namespace foretoken
