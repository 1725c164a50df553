#include "kernels/op_cost.h"

#include <algorithm>
#include <array>
#include <map>
#include <type_traits>

#include "base/check.h"
#include "kernels/attention.h"
#include "kernels/embed.h"
#include "kernels/gated_act.h"
#include "kernels/gemm.h"
#include "kernels/head_argmax.h"
#include "kernels/host_logits.h"
#include "kernels/keep_raw.h"
#include "kernels/layer_tail.h"
#include "kernels/logprobs.h"
#include "kernels/move_rows.h"
#include "kernels/pair_rows.h"
#include "kernels/pool.h"
#include "kernels/rms_norm.h"
#include "kernels/rope_kv.h"
#include "kernels/sample.h"
#include "kernels/shape_logits.h"
#include "kernels/softcap.h"
#include "kernels/spread_logits.h"

namespace foretoken {
namespace {

constexpr int64_t kFloat = sizeof(float);
constexpr int64_t kId = sizeof(int32_t);

int64_t live_count(const LiveRows& live, RowKind kind, int row_offset, int max_rows) {
  const int count =
      kind == RowKind::kToken ? live.counts.num_rows : live.counts.num_logits_rows - row_offset;
  return std::clamp(count, 0, max_rows);
}

int64_t size_of(DType dtype) { return static_cast<int64_t>(dtype_size(dtype)); }

// Of a packed weight of so many elements.
int64_t weight_bytes(int64_t elements, DType dtype, const LiveRows& live) {
  return live.weight_bytes > 0 ? live.weight_bytes : elements * size_of(dtype);
}

std::string product(int64_t a, int64_t b) { return std::to_string(a) + " x " + std::to_string(b); }

// How one kind of op is looked at. Args: its argument block.
template <class Args>
struct Costs;

template <>
struct Costs<EmbedArgs> {
  static LiveRowsPlace place(const EmbedArgs& a) { return {a.counts}; }
  static OpCost cost(const EmbedArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    const bool norms = a.norm_weight != nullptr;
    return {.weight_bytes = norms ? a.hidden * kFloat : 0,
            .row_bytes = rows * a.hidden * ((norms ? 2 : 1) * size_of(a.dtype) + kFloat)};
  }
  static std::string shape(const EmbedArgs& a) {
    return std::to_string(a.hidden) + (a.norm_weight != nullptr ? ", norms" : "");
  }
};

template <>
struct Costs<RmsNormArgs> {
  static LiveRowsPlace place(const RmsNormArgs& a) { return {a.counts}; }
  static OpCost cost(const RmsNormArgs& a, const LiveRows& live) {
    const RowKind kind = a.row_index != nullptr ? RowKind::kLogits : RowKind::kToken;
    const int64_t rows = live_count(live, kind, a.row_offset, a.max_rows);
    // Gathered rows are not stored back.
    const int64_t adds = a.delta == nullptr ? 0 : a.row_index != nullptr ? 1 : 2;
    return {.weight_bytes = a.weight != nullptr ? a.hidden * kFloat : 0,
            .row_bytes = rows * a.hidden * ((1 + adds) * kFloat + size_of(a.out_dtype))};
  }
  static std::string shape(const RmsNormArgs& a) {
    return std::to_string(a.hidden) + (a.delta != nullptr ? ", adds" : "");
  }
};

template <>
struct Costs<GemmArgs> {
  static LiveRowsPlace place(const GemmArgs& a) { return {a.counts}; }
  static OpCost cost(const GemmArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, a.row_kind, a.row_offset, a.max_rows);
    const int64_t weight = int64_t{a.n} * a.k;
    const int64_t out = a.gated != 0 ? a.n / 2 : a.add != 0 ? 2 * int64_t{a.n} : a.n;
    return {.weight_bytes =
                weight_bytes(weight, a.dtype, live) + (a.bias != nullptr ? a.n * kFloat : 0),
            .row_bytes = rows * (a.k * size_of(a.dtype) + out * size_of(a.out_dtype)),
            .flops = 2 * rows * weight};
  }
  static std::string shape(const GemmArgs& a) {
    return product(a.n, a.k) + (a.gated != 0 ? ", gated" : a.add != 0 ? ", adds" : "");
  }
};

template <>
struct Costs<LayerTailArgs> {
  static LiveRowsPlace place(const LayerTailArgs& a) { return {a.counts}; }
  static OpCost cost(const LayerTailArgs& a, const LiveRows& live) {
    LiveRows each = live;
    each.weight_bytes = 0;
    OpCost sum;
    for_each_tail_op(a, [&]<class Args>(const Args& op) { sum += Costs<Args>::cost(op, each); });
    if (live.weight_bytes > 0) {
      sum.weight_bytes += live.weight_bytes - elements(a) * size_of(a.dtype);
    }
    return sum;
  }
  static std::string shape(const LayerTailArgs& a) {
    return product(a.hidden, a.x_size) + ", " + product(2 * a.inner, a.hidden) + ", " +
           product(a.hidden, a.inner) +
           (a.qkv != nullptr ? ", " + product(a.qkv_size, a.hidden) : "");
  }
  static int64_t elements(const LayerTailArgs& a) {
    return int64_t{a.hidden} *
           (a.x_size + 3 * int64_t{a.inner} + (a.qkv != nullptr ? a.qkv_size : 0));
  }
};

template <>
struct Costs<HeadArgmaxArgs> {
  static LiveRowsPlace place(const HeadArgmaxArgs& a) { return {a.counts}; }
  static OpCost cost(const HeadArgmaxArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kLogits, 0, a.max_rows);
    const int64_t weight = int64_t{a.n} * a.k;
    return {.weight_bytes = weight_bytes(weight, a.dtype, live),
            .row_bytes = rows * (a.k * size_of(a.dtype) + kId),
            .flops = 2 * rows * weight};
  }
  static std::string shape(const HeadArgmaxArgs& a) { return product(a.n, a.k); }
};

template <>
struct Costs<RopeKvArgs> {
  static LiveRowsPlace place(const RopeKvArgs& a) { return {a.counts}; }
  static OpCost cost(const RopeKvArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    const int64_t q = int64_t{a.num_heads} * a.kv.head_dim;
    const int64_t kv = int64_t{2} * a.kv.num_kv_heads * a.kv.head_dim;
    return {.kv_bytes = rows * 2 * a.kv.num_kv_heads * kv_entry_bytes(a.kv),
            .row_bytes = rows * ((q + kv) * kFloat + q * size_of(a.kv.dtype))};
  }
  static std::string shape(const RopeKvArgs& a) { return product(a.num_heads, a.kv.head_dim); }
};

// Positions that a row sees.
struct Seen {
  int begin = 0;
  int end = 0;
  int64_t count() const { return std::max(end - begin, 0); }
};

Seen seen_by(const AttentionArgs& a, int position) {
  const int oldest = a.window > 0 ? position + 1 - a.window : 0;
  return {std::max(std::min(a.kv_begin, position), oldest), position + 1};
}

template <>
struct Costs<AttentionArgs> {
  static LiveRowsPlace place(const AttentionArgs& a) { return {a.counts, a.positions, a.row_slot}; }
  // The rows of a sequence share what they see.
  static OpCost cost(const AttentionArgs& a, const LiveRows& live) {
    const int64_t num_rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    std::map<int32_t, Seen> of_slot;
    int64_t products = 0;
    for (int64_t row = 0; row < num_rows; ++row) {
      const auto at = static_cast<size_t>(row);
      const Seen seen = seen_by(a, live.positions.at(at));
      const auto [found, is_new] = of_slot.try_emplace(live.row_slot.at(at), seen);
      found->second.begin = std::min(found->second.begin, seen.begin);
      found->second.end = std::max(found->second.end, seen.end);
      products += seen.count();
    }
    int64_t entries = 0;
    for (const auto& [slot, seen] : of_slot) entries += seen.count();
    const int64_t q = int64_t{a.num_heads} * a.kv.head_dim;
    return {.kv_bytes = entries * 2 * a.kv.num_kv_heads * kv_entry_bytes(a.kv),
            .row_bytes = 2 * num_rows * q * size_of(a.kv.dtype),
            .flops = 4 * products * q};
  }
  static std::string shape(const AttentionArgs& a) {
    return product(a.num_heads, a.kv.head_dim) + " over " + std::to_string(a.kv.num_kv_heads) +
           (a.window > 0 ? ", window " + std::to_string(a.window) : "");
  }
};

template <>
struct Costs<GatedActArgs> {
  static LiveRowsPlace place(const GatedActArgs& a) { return {a.counts}; }
  static OpCost cost(const GatedActArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    return {.row_bytes = rows * a.size * (2 * kFloat + size_of(a.out_dtype))};
  }
  static std::string shape(const GatedActArgs& a) { return std::to_string(a.size); }
};

template <>
struct Costs<SoftcapArgs> {
  static LiveRowsPlace place(const SoftcapArgs& a) { return {a.counts}; }
  static OpCost cost(const SoftcapArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, a.row_kind, a.row_offset, a.max_rows);
    return {.row_bytes = 2 * rows * a.size * kFloat};
  }
  static std::string shape(const SoftcapArgs& a) { return std::to_string(a.size); }
};

template <>
struct Costs<PoolArgs> {
  static LiveRowsPlace place(const PoolArgs& a) { return {a.tensors.counts}; }
  static OpCost cost(const PoolArgs& a, const LiveRows& live) {
    return {.row_bytes = live.counts.num_rows * a.hidden * size_of(a.dtype)};
  }
  static std::string shape(const PoolArgs& a) { return std::to_string(a.hidden); }
};

// Ops that go over rows of logits; `times`: how often a row is read or written.
template <class Args>
OpCost logits_cost(const Args& a, const LiveRows& live, int64_t times) {
  const int64_t rows = live_count(live, RowKind::kLogits, a.row_offset, a.max_rows);
  return {.row_bytes = times * rows * a.vocab * kFloat};
}

#define FT_LOGITS_COSTS(Args, counts_of, times)                                 \
  template <>                                                                   \
  struct Costs<Args> {                                                          \
    static LiveRowsPlace place(const Args& a) { return {a.counts_of}; }         \
    static OpCost cost(const Args& a, const LiveRows& live) {                   \
      return logits_cost(a, live, times);                                       \
    }                                                                           \
    static std::string shape(const Args& a) { return std::to_string(a.vocab); } \
  }
FT_LOGITS_COSTS(KeepRawArgs, tensors.counts, 2);
FT_LOGITS_COSTS(ExportLogitsArgs, tensors.counts, 2);
FT_LOGITS_COSTS(ImportLogitsArgs, counts, 2);
FT_LOGITS_COSTS(ShapeLogitsArgs, tensors.counts, 2);
FT_LOGITS_COSTS(SampleArgs, tensors.counts, 1);
FT_LOGITS_COSTS(LogprobsArgs, tensors.counts, 1);
#undef FT_LOGITS_COSTS

template <>
struct Costs<MoveRowsArgs> {
  static LiveRowsPlace place(const MoveRowsArgs& a) { return {a.counts}; }
  static OpCost cost(const MoveRowsArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, a.row_kind, 0, a.max_rows);
    return {.row_bytes = rows * a.width * (size_of(a.in_dtype) + size_of(a.out_dtype))};
  }
  static std::string shape(const MoveRowsArgs& a) { return std::to_string(a.width); }
};

template <>
struct Costs<PairRowsArgs> {
  static LiveRowsPlace place(const PairRowsArgs& a) { return {a.counts}; }
  static OpCost cost(const PairRowsArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kToken, 0, a.max_rows);
    return {.row_bytes = rows * a.hidden * (3 * size_of(a.dtype) + size_of(a.states_dtype))};
  }
  static std::string shape(const PairRowsArgs& a) { return std::to_string(a.hidden); }
};

template <>
struct Costs<SpreadLogitsArgs> {
  static LiveRowsPlace place(const SpreadLogitsArgs& a) { return {a.counts}; }
  static OpCost cost(const SpreadLogitsArgs& a, const LiveRows& live) {
    const int64_t rows = live_count(live, RowKind::kLogits, a.row_offset, a.max_rows);
    return {.row_bytes = rows * (int64_t{a.n} + a.vocab) * kFloat};
  }
  static std::string shape(const SpreadLogitsArgs& a) { return product(a.n, a.vocab); }
};

// The packed weights of an op, if it has any, and their elements.
struct WeightsOf {
  std::vector<const void*> handles;
  int64_t elements = 0;
};

template <class Args>
WeightsOf weights_of(const Args& args) {
  if constexpr (std::is_same_v<Args, GemmArgs> || std::is_same_v<Args, HeadArgmaxArgs>) {
    return {{args.weight}, int64_t{args.n} * args.k};
  } else if constexpr (std::is_same_v<Args, LayerTailArgs>) {
    WeightsOf weights{{args.o, args.gate_up, args.down}, Costs<LayerTailArgs>::elements(args)};
    if (args.qkv != nullptr) weights.handles.push_back(args.qkv);
    return weights;
  } else {
    return {};
  }
}

struct OpView {
  const char* name = nullptr;
  bool repeats = false;
  LiveRowsPlace (*place)(const void* args) = nullptr;
  OpCost (*cost)(const void* args, const LiveRows& live) = nullptr;
  std::string (*shape)(const void* args) = nullptr;
  WeightsOf (*weights)(const void* args) = nullptr;
};

template <class Args>
const Args& as(const void* args) {
  return *static_cast<const Args*>(args);
}

template <class Args>
constexpr OpView counted(const char* name) {
  return {name,
          true,
          [](const void* args) { return Costs<Args>::place(as<Args>(args)); },
          [](const void* args, const LiveRows& live) {
            return Costs<Args>::cost(as<Args>(args), live);
          },
          [](const void* args) { return Costs<Args>::shape(as<Args>(args)); },
          [](const void* args) { return weights_of(as<Args>(args)); }};
}

using OpViews = std::array<OpView, static_cast<size_t>(Op::kCount)>;

constexpr OpViews make_views() {
  OpViews views{};
  const auto set = [&](Op op, const OpView& view) { views[static_cast<size_t>(op)] = view; };
  set(Op::kDelay, {"delay", true});
  set(Op::kMarkTime, {"mark_time", true});
  set(Op::kStamp, {"stamp"});
  set(Op::kUpload, {"upload"});
  set(Op::kPrepare, {"prepare"});
  set(Op::kEmbed, counted<EmbedArgs>("embed"));
  set(Op::kRmsNorm, counted<RmsNormArgs>("rms_norm"));
  set(Op::kGemm, counted<GemmArgs>("gemm"));
  set(Op::kLayerTail, counted<LayerTailArgs>("layer_tail"));
  set(Op::kRopeKv, counted<RopeKvArgs>("rope_kv"));
  set(Op::kAttention, counted<AttentionArgs>("attention"));
  set(Op::kGatedAct, counted<GatedActArgs>("gated_act"));
  set(Op::kSoftcap, counted<SoftcapArgs>("softcap"));
  set(Op::kPool, counted<PoolArgs>("pool"));
  set(Op::kKeepRaw, counted<KeepRawArgs>("keep_raw"));
  set(Op::kExportLogits, counted<ExportLogitsArgs>("export_logits"));
  set(Op::kImportLogits, counted<ImportLogitsArgs>("import_logits"));
  set(Op::kShapeLogits, counted<ShapeLogitsArgs>("shape_logits"));
  set(Op::kExportSpans, {"export_spans"});
  set(Op::kAwaitMasks, {"await_masks"});
  set(Op::kApplyMasks, {"apply_masks", true});
  set(Op::kSample, counted<SampleArgs>("sample"));
  set(Op::kLogprobs, counted<LogprobsArgs>("logprobs"));
  set(Op::kCommit, {"commit"});
  set(Op::kPublish, {"publish"});
  set(Op::kNgram, {"ngram"});
  set(Op::kChooseLengths, {"choose_lengths"});
  set(Op::kDraftRows, {"draft_rows"});
  set(Op::kDraftNext, {"draft_next"});
  set(Op::kMoveRows, counted<MoveRowsArgs>("move_rows"));
  set(Op::kPairRows, counted<PairRowsArgs>("pair_rows"));
  set(Op::kHeadArgmax, counted<HeadArgmaxArgs>("head_argmax"));
  set(Op::kSpreadLogits, counted<SpreadLogitsArgs>("spread_logits"));
  set(Op::kFillRandom, {"fill_random"});
  set(Op::kPackRows, {"pack_rows"});
  set(Op::kAllReduce, {"all_reduce"});
  set(Op::kSendStep, {"send_step"});
  set(Op::kReceiveStep, {"receive_step"});
  set(Op::kSendRows, {"send_rows"});
  set(Op::kReceiveRows, {"receive_rows"});
  set(Op::kGatherColumns, {"gather_columns"});
  set(Op::kGatherArgmax, {"gather_argmax"});
  set(Op::kShareMasks, {"share_masks"});
  return views;
}

constexpr OpViews kViews = make_views();

const OpView& view_of(Op op) {
  FT_CHECK(op < Op::kCount);
  return kViews[static_cast<size_t>(op)];
}

}  // namespace

OpCost& OpCost::operator+=(const OpCost& other) {
  weight_bytes += other.weight_bytes;
  kv_bytes += other.kv_bytes;
  row_bytes += other.row_bytes;
  flops += other.flops;
  return *this;
}

const char* op_name(Op op) {
  const char* name = view_of(op).name;
  return name != nullptr ? name : "?";
}

LiveRowsPlace live_rows_place(Op op, const void* args) {
  const OpView& view = view_of(op);
  return view.place != nullptr ? view.place(args) : LiveRowsPlace{};
}

OpCost op_cost(Op op, const void* args, const LiveRows& live) {
  const OpView& view = view_of(op);
  return view.cost != nullptr ? view.cost(args, live) : OpCost{};
}

std::vector<const void*> op_weights(Op op, const void* args) {
  const OpView& view = view_of(op);
  return view.weights != nullptr ? view.weights(args).handles : std::vector<const void*>();
}

std::string op_shape(Op op, const void* args, int64_t weight_bytes) {
  const OpView& view = view_of(op);
  if (view.shape == nullptr) return {};
  const std::string shape = view.shape(args);
  if (weight_bytes == 0) return shape;
  const int64_t elements = view.weights(args).elements;
  const int64_t tenths = (80 * weight_bytes + elements / 2) / elements;
  return shape + ", " + std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " bits";
}

bool op_repeats(Op op) { return view_of(op).repeats; }

}  // namespace foretoken
