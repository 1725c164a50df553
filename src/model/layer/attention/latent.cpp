#include "model/layer/attention/latent.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "kernels/attention/gate_heads.h"
#include "kernels/latent/head_gemm.h"
#include "kernels/latent/latent_kv.h"
#include "kernels/latent/latent_q.h"
#include "model/layer/attention/kv_scales.h"

namespace foretoken {
namespace {

// Rows of all queries of the rank's heads, under the name of `from`.
TensorPart query_part(const std::string& name, const LatentSpec& whole, const ShardRange& heads) {
  const int64_t dim = whole.head_dim();
  const PairedHeads paired{whole.head_dim(), whole.paired && !whole.still ? whole.rope_dim : 0,
                           whole.nope_dim};
  TensorPart part{name, whole.q_size(), heads.begin * dim, heads.count * dim, paired};
  part.padded = whole.padded_queries();
  return part;
}

// Compressed or whole queries, then what goes to the cache.
std::vector<TensorPart> latent_first_parts(const std::string& base, const LatentSpec& whole,
                                           const ShardRange& heads) {
  const PairedHeads paired{whole.entry_dim(), whole.paired && !whole.still ? whole.rope_dim : 0,
                           whole.kv_rank};
  TensorPart kv = {base + "kv_a_proj_with_mqa", whole.entry_dim(), 0, -1, paired};
  kv.padded = whole.padded_entry();
  if (whole.q_rank > 0) return {{base + "q_a_proj", whole.q_rank}, kv};
  return {query_part(base + "q_proj", whole, heads), kv};
}

// kv_b_proj holds for each head the rows that make its keys, then those of its values. Absorbed
// into queries, keys are columns.
struct AbsorbedParts {
  std::vector<TensorPart> keys;    // [kv_rank, nope_dim] for each head
  std::vector<TensorPart> values;  // [value_dim, kv_rank]
};

AbsorbedParts absorbed_parts(const std::string& base, const LatentSpec& whole,
                             const ShardRange& heads) {
  const std::string name = base + "kv_b_proj.weight";
  const int64_t each = whole.nope_dim + whole.value_dim;
  AbsorbedParts parts;
  for (int64_t head = heads.begin; head < heads.begin + heads.count; ++head) {
    TensorPart part{name, whole.num_heads * each, head * each, whole.nope_dim};
    part.widened = true;
    parts.values.push_back(part);
    part.transposed = {whole.kv_rank, 0, whole.kv_rank};
    parts.keys.push_back(part);
    parts.values.back().first_row += whole.nope_dim;
    parts.values.back().num_rows = whole.value_dim;
  }
  return parts;
}

// The same from files that have both apart, keys as they are absorbed (GGUF).
AbsorbedParts divided_parts(const std::string& base, const LatentSpec& whole,
                            const ShardRange& heads) {
  const auto part = [&](const char* name, int64_t rows) {
    TensorPart found{base + name, whole.num_heads * rows, heads.begin * rows, heads.count * rows};
    found.widened = true;
    found.stacked = whole.num_heads;
    return found;
  };
  return {{part("k_b_proj.weight", whole.kv_rank)}, {part("v_b_proj.weight", whole.value_dim)}};
}

Status load_absorbed(PartLoader& loader, const std::string& base, const LatentSpec& whole,
                     Latent* out) {
  const ShardRange heads = shard_of(whole.num_heads, loader.sharding());
  const bool divided = loader.weights().has_optional(base + "k_b_proj.weight");
  const AbsorbedParts parts =
      divided ? divided_parts(base, whole, heads) : absorbed_parts(base, whole, heads);
  const int64_t nope = whole.nope_dim, rank = whole.kv_rank;
  FT_ASSIGN_OR_RETURN(out->absorb_k, loader.weights().matrix(parts.keys, {nope, 0, nope},
                                                             WeightOrder::kPlain, rank));
  FT_ASSIGN_OR_RETURN(out->absorb_v, loader.weights().matrix(parts.values, {rank, 0, rank},
                                                             WeightOrder::kPlain, whole.value_dim));
  return {};
}

Status load_queries(PartLoader& loader, const std::string& base, const LatentSpec& whole,
                    Latent* out) {
  if (whole.q_rank == 0) return {};
  const ShardRange heads = shard_of(whole.num_heads, loader.sharding());
  FT_RETURN_IF_ERROR(
      loader.load_norm_weights({{base + "q_a_layernorm.weight", whole.q_rank}}, &out->q_norm));
  if (!whole.gates_with_queries) {
    return loader.load_linear({query_part(base + "q_b_proj", whole, heads)}, whole.q_rank, false,
                              &out->q_b);
  }
  const std::string name = base + whole.gate_proj;
  const int32_t queries = whole.head_dim(), each = queries + whole.value_dim;
  std::vector<TensorPart> of_queries, of_gates;
  for (int64_t head = heads.begin; head < heads.begin + heads.count; ++head) {
    const PairedHeads paired{each, whole.paired ? whole.rope_dim : 0, whole.nope_dim};
    const int64_t all = int64_t{whole.num_heads} * each;
    of_queries.push_back({name, all, head * each, queries, paired});
    of_gates.push_back({name, all, head * each + queries, whole.value_dim});
  }
  FT_RETURN_IF_ERROR(loader.load_linear(of_queries, whole.query_inputs(), false, &out->q_b));
  return loader.load_linear(of_gates, whole.query_inputs(), false, &out->gates);
}

// With the scale of what is normed.
Status load_kv_norm(PartLoader& loader, const std::string& name, const LatentSpec& whole,
                    const float** out) {
  if (whole.kv_scale == 1) return loader.load_norm_weights({{name, whole.kv_rank}}, out);
  const int64_t size = whole.kv_rank;
  FT_RETURN_IF_ERROR(loader.weights().expect(name, {&size, 1}));
  std::vector<float> weights(static_cast<size_t>(size), 1.0f);
  if (loader.weights().has_optional(name)) {
    FT_ASSIGN_OR_RETURN(weights, loader.weights().numbers(name));
  }
  for (float& weight : weights) weight *= whole.kv_scale;
  return loader.upload(weights, "the weights of norms", out);
}

}  // namespace

Status Latent::load(PartLoader& loader, const std::string& layer, const LatentSpec& whole) {
  const std::string base = layer + whole.base;
  if (whole.bias && whole.q_rank == 0) {
    return unsupported(loader.config().architecture +
                       ": attention_bias is not supported where queries are not compressed; set "
                       "q_lora_rank or attention_bias false");
  }
  const ShardRange heads = shard_of(whole.num_heads, loader.sharding());
  spec = part_of(whole, loader.sharding());
  dtype = loader.config().dtype;
  eps = whole.norm_eps;
  FT_RETURN_IF_ERROR(
      loader.load_linear(latent_first_parts(base, whole, heads), whole.inputs, whole.bias, &first));
  FT_RETURN_IF_ERROR(load_queries(loader, base, whole, this));
  FT_RETURN_IF_ERROR(load_kv_norm(loader, base + "kv_a_layernorm.weight", whole, &kv_norm));
  FT_RETURN_IF_ERROR(load_absorbed(loader, base, whole, this));
  if (whole.index.exists()) {
    FT_RETURN_IF_ERROR(index.load(loader, base + whole.indexer, whole));
  }
  const int64_t values = int64_t{whole.num_heads} * whole.value_dim;
  FT_RETURN_IF_ERROR(loader.load_summed(base + whole.o, values, whole.o_bias, &o));
  if (whole.gate_proj != nullptr && !whole.gates_with_queries) {
    const int64_t each = whole.num_gates() / whole.num_heads;
    const TensorPart part{base + whole.gate_proj, whole.num_gates(), heads.begin * each,
                          heads.count * each};
    FT_RETURN_IF_ERROR(loader.load_linear({part}, whole.inputs, false, &gates));
  }
  if (whole.sinks != nullptr) {
    const TensorPart part{base + whole.sinks, whole.num_heads, heads.begin, heads.count};
    FT_RETURN_IF_ERROR(loader.load_vector({part}, &sinks));
  }
  // Latents have a scale for each group of a row.
  ignore_attention_scales(loader, base);
  // Older exports store this buffer; it follows from the config.
  loader.weights().ignore(base + "rotary_emb.inv_freq");
  return {};
}

void Latent::Scratch::fit(const LatentSpec& part) {
  const bool is_first = widest_.num_heads == 0;
  FT_CHECK(is_first || (widest_.q_rank > 0) == (part.q_rank > 0));
  widest_.num_heads = std::max(widest_.num_heads, part.num_heads);
  widest_.q_rank = std::max(widest_.q_rank, part.q_rank);
  widest_.kv_rank = std::max(widest_.kv_rank, part.kv_rank);
  widest_.nope_dim = std::max(widest_.nope_dim, part.nope_dim);
  widest_.rope_dim = std::max(widest_.rope_dim, part.rope_dim);
  widest_.value_dim = std::max(widest_.value_dim, part.value_dim);
  num_gates_ = std::max(num_gates_, part.num_gates());
  widest_.gates_with_queries = widest_.gates_with_queries || part.gates_with_queries;
  index.fit(part.index);
}

Status Latent::Scratch::take(const ScratchSource& source) {
  const LatentSpec& all = widest_;
  if (all.num_heads == 0) return {};
  const int64_t heads = all.num_heads;
  FT_ASSIGN_OR_RETURN(first, source.floats(all.first_size()));
  if (all.q_rank > 0) {
    FT_ASSIGN_OR_RETURN(q_low, source.act(all.q_rank));
    FT_ASSIGN_OR_RETURN(q_whole, source.floats(all.q_size()));
    if (all.gates_with_queries) {
      FT_ASSIGN_OR_RETURN(q_both, source.act(all.query_inputs()));
    }
  }
  FT_ASSIGN_OR_RETURN(nope, source.act(heads * all.nope_dim));
  FT_ASSIGN_OR_RETURN(q, source.act(heads * all.entry_dim()));
  FT_ASSIGN_OR_RETURN(latents, source.act(heads * all.kv_rank));
  FT_ASSIGN_OR_RETURN(attended, source.act(heads * all.value_dim));
  if (num_gates_ > 0) {
    FT_ASSIGN_OR_RETURN(gates, source.floats(num_gates_));
  }
  FT_RETURN_IF_ERROR(index.take(source));
  return attention.take(source, all.num_heads, all.entry_dim());
}

void Latent::project(const LayerRows& rows, const void* x, const Scratch& scratch) const {
  multiply(rows, x, first, {scratch.first}, dtype);
  if (gates.outputs > 0 && !spec.gates_with_queries) {
    multiply(rows, x, gates, {scratch.gates}, dtype);
  }
  if (spec.index.exists()) index.project(rows, x, scratch.index, dtype);
}

// Compressed queries as they are behind their norm, and before it, make both.
void Latent::make_whole_queries(const LayerRows& rows, const Scratch& scratch) const {
  if (!spec.gates_with_queries) {
    return multiply(rows, scratch.q_low, q_b, {scratch.q_whole}, dtype);
  }
  const auto put = [&](const void* from, DType from_dtype, int32_t stride, int32_t offset) {
    move_rows(rows.queue, {.counts = rows.counts,
                           .in = from,
                           .out = scratch.q_both,
                           .from = nullptr,
                           .to = nullptr,
                           .row_kind = RowKind::kToken,
                           .max_rows = rows.max_rows,
                           .width = spec.q_rank,
                           .out_stride = spec.query_inputs(),
                           .out_offset = offset,
                           .in_dtype = from_dtype,
                           .out_dtype = dtype,
                           .in_stride = stride});
  };
  put(scratch.q_low, dtype, spec.q_rank, 0);
  put(scratch.first, DType::kF32, spec.first_size(), spec.q_rank);
  multiply(rows, scratch.q_both, q_b, {scratch.q_whole}, dtype);
  multiply(rows, scratch.q_both, gates, {scratch.gates}, dtype);
}

// Queries in the latents' space: [what `absorb_k` makes of the first part | the part that turns].
void Latent::make_queries(const LayerRows& rows, const LayerKv& kv, const Scratch& scratch) const {
  latent_kv(rows.queue, {.counts = rows.counts,
                         .x = scratch.first,
                         .q_out = spec.q_rank > 0 ? scratch.q_low : nullptr,
                         .positions = rows.positions,
                         .kv_slot = kv.kv_slot,
                         .inv_freq = kv.rope.inv_freq,
                         .kv_norm = kv_norm,
                         .q_norm = q_norm,
                         .kv = kv.kv,
                         .max_rows = rows.max_rows,
                         .q_size = spec.first_size() - spec.entry_dim(),
                         .kv_rank = spec.kv_rank,
                         .rope_dim = spec.rope_dim,
                         .scaling = kv.rope.scaling,
                         .norm_eps = eps,
                         .position_shift = kv.position_shift});
  // Ahead of latent_q: attention reads what is chosen before the op ahead of it has ended.
  if (spec.index.exists()) index.choose(rows, kv, scratch.q_low, scratch.index, dtype);
  if (spec.q_rank > 0) make_whole_queries(rows, scratch);
  latent_q(rows.queue, {.counts = rows.counts,
                        .x = spec.q_rank > 0 ? scratch.q_whole : scratch.first,
                        .nope = scratch.nope,
                        .q = scratch.q,
                        .positions = rows.positions,
                        .inv_freq = kv.rope.inv_freq,
                        .x_stride = spec.q_rank > 0 ? spec.q_size() : spec.first_size(),
                        .max_rows = rows.max_rows,
                        .num_heads = spec.num_heads,
                        .nope_dim = spec.nope_dim,
                        .rope_dim = spec.rope_dim,
                        .kv_rank = spec.kv_rank,
                        .scaling = kv.rope.scaling,
                        .dtype = dtype,
                        .position_shift = kv.position_shift,
                        .query_scale = spec.query_scale,
                        .absorb = absorb_k.get()});
}

void Latent::attend(const LayerRows& rows, const LayerKv& kv, const Scratch& scratch) const {
  make_queries(rows, kv, scratch);
  AttentionArgs attention = scratch.attention.args_of(rows, kv);
  attention.q = scratch.q;
  attention.out = scratch.latents;
  attention.num_heads = spec.num_heads;
  attention.scale = spec.scale;
  attention.sinks = sinks;
  if (spec.index.exists()) index.restrict_to_chosen(scratch.index, &attention);
  scratch.attention.run(rows, attention);
  head_gemm(rows.queue, {.counts = rows.counts,
                         .x = scratch.latents,
                         .weight = absorb_v.get(),
                         .y = scratch.attended,
                         .max_rows = rows.max_rows,
                         .num_heads = spec.num_heads,
                         .n = spec.value_dim,
                         .k = spec.kv_rank,
                         .x_stride = spec.kv_rank,
                         .y_stride = spec.value_dim,
                         .dtype = dtype});
  if (gates.outputs == 0) return;
  gate_heads(rows.queue, {.counts = rows.counts,
                          .x = scratch.attended,
                          .gates = scratch.gates,
                          .max_rows = rows.max_rows,
                          .num_heads = spec.num_heads,
                          .head_dim = spec.value_dim,
                          .each_element = spec.gates == HeadGates::kEachElement ? 1 : 0,
                          .gate = HeadGate::kSigmoid,
                          .dtype = dtype});
}

}  // namespace foretoken
