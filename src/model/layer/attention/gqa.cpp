#include "model/layer/attention/gqa.h"

#include <algorithm>
#include <vector>

#include "kernels/attention/gate_heads.h"
#include "kernels/attention/rope_kv.h"
#include "kernels/rows/norm_columns.h"
#include "model/layer/attention/distance_bias.h"

namespace foretoken {
namespace {

// The rows of the rank's heads in a tensor that has them group by group.
std::vector<TensorPart> grouped_parts(const std::string& name, const GqaSpec& whole,
                                      const ShardRange& heads, const ShardRange& kv_heads) {
  const int64_t dim = whole.head_dim, queries = whole.num_heads / whole.num_kv_heads;
  const int64_t all = whole.qkv_size(), group = (queries + 2) * dim;
  const PairedHeads paired{whole.head_dim, whole.paired};
  std::vector<TensorPart> parts;
  for (int64_t head = heads.begin; head < heads.begin + heads.count; ++head) {
    parts.push_back({name, all, head / queries * group + head % queries * dim, dim, paired});
  }
  for (const int64_t behind : {queries, queries + 1}) {
    for (int64_t head = kv_heads.begin; head < kv_heads.begin + kv_heads.count; ++head) {
      const PairedHeads of_keys = behind == queries ? paired : PairedHeads{};
      parts.push_back({name, all, head * group + behind * dim, dim, of_keys});
    }
  }
  return parts;
}

// The same of a tensor in pieces, each of which has queries, values and keys of some heads.
std::vector<TensorPart> parts_in_pieces(const std::string& name, const GqaSpec& whole,
                                        const ShardRange& heads) {
  const int64_t dim = whole.head_dim, all = whole.qkv_size();
  const int64_t each = whole.num_heads / whole.fused_pieces;
  const PairedHeads paired{whole.head_dim, whole.paired};
  std::vector<TensorPart> parts;
  for (const int64_t kind : {0, 2, 1}) {  // behind queries the file has values
    for (int64_t head = heads.begin; head < heads.begin + heads.count; ++head) {
      const int64_t row = (head / each * 3 + kind) * each + head % each;
      parts.push_back({name, all, row * dim, dim, kind == 1 ? PairedHeads{} : paired});
    }
  }
  return parts;
}

// Of each head's rows in a tensor that has two of `dim` rows side by side, the first or the second.
void add_each_second(const std::string& name, int64_t dim, int64_t all, const ShardRange& heads,
                     bool second, std::vector<TensorPart>* parts) {
  for (int64_t head = heads.begin; head < heads.begin + heads.count; ++head) {
    parts->push_back({name, 2 * all, (2 * head + (second ? 1 : 0)) * dim, dim});
  }
}

// The rows of some heads, of each its second half first.
void add_turned_back(const std::string& name, int64_t dim, int64_t all, const ShardRange& heads,
                     std::vector<TensorPart>* parts) {
  for (int64_t head = heads.begin; head < heads.begin + heads.count; ++head) {
    parts->push_back({name, all, head * dim + dim / 2, dim / 2});
    parts->push_back({name, all, head * dim, dim / 2});
  }
}

// The queries of pairs of heads: half a head's rows, as many zeros, the other half and zeros again;
// of a second head, whose key lies behind the first one's, the zeros before them.
void add_queries_of_pairs(const std::string& name, const GqaSpec& whole, const ShardRange& heads,
                          std::vector<TensorPart>* parts) {
  const int64_t dim = whole.head_dim, half = dim / 4;
  for (int64_t i = heads.begin; i < heads.begin + heads.count; ++i) {
    const bool second = i % 2 == 1;
    const int64_t head = i / 2 + (second ? whole.num_heads / 2 : 0);
    TensorPart part{name, whole.q_size(), head * dim - (second ? half : 0), dim};
    part.padded = {static_cast<int32_t>(half), static_cast<int32_t>(2 * half)};
    parts->push_back(part);
  }
}

// Pairs of key heads, or of value heads: the pieces of the second lie behind those of the first.
void add_pairs(const std::string& name, const GqaSpec& whole, const ShardRange& heads,
               int64_t pieces, std::vector<TensorPart>* parts) {
  const int64_t dim = whole.head_dim / 2, rows = dim / pieces;
  for (int64_t pair = heads.begin; pair < heads.begin + heads.count; ++pair) {
    for (int64_t piece = 0; piece < pieces; ++piece) {
      for (const int64_t head : {pair, pair + whole.num_kv_heads}) {
        parts->push_back({name, whole.kv_size(), head * dim + piece * rows, rows});
      }
    }
  }
}

// Halves of keys lie beside each other, as heads turn by halves.
std::vector<TensorPart> parts_of_pairs(const std::string& base, const GqaSpec& whole,
                                       const ShardRange& heads, const ShardRange& kv_heads) {
  std::vector<TensorPart> parts;
  add_queries_of_pairs(base + "q_proj", whole, heads, &parts);
  add_pairs(base + "k_proj", whole, kv_heads, 2, &parts);
  add_pairs(base + "v_proj", whole, kv_heads, 1, &parts);
  return parts;
}

// The rows of the rank's heads.
std::vector<TensorPart> qkv_parts(const std::string& base, const GqaSpec& whole,
                                  const Sharding& sharding) {
  const int64_t dim = whole.head_dim, q = whole.q_size(), kv = whole.kv_size();
  const ShardRange heads = shard_of(whole.num_heads, sharding);
  const ShardRange kv_heads = shard_of_kv_heads(whole.num_kv_heads, sharding);
  const int64_t first = heads.begin * dim, rows = heads.count * dim;
  const int64_t kv_first = kv_heads.begin * dim, kv_rows = kv_heads.count * dim;
  const PairedHeads paired{whole.head_dim, whole.paired};
  if (whole.differs()) return parts_of_pairs(base, whole, heads, kv_heads);
  if (whole.kv_of >= 0) return {{base + "q_proj", q, first, rows, paired}};
  if (whole.pairs_kv) {
    std::vector<TensorPart> parts = {{base + "query", q, first, rows}};
    for (const bool of_values : {false, true}) {
      add_each_second(base + "key_value", dim, kv, kv_heads, of_values, &parts);
    }
    return parts;
  }
  if (!whole.fused) {
    TensorPart values{base + (whole.keys_are_values ? "k_proj" : "v_proj"), kv, kv_first, kv_rows};
    values.padded = whole.padding(false);
    if (whole.gates_in_q) {
      std::vector<TensorPart> parts;
      add_each_second(base + "q_proj", dim, q, heads, false, &parts);
      parts.push_back({base + "k_proj", kv, kv_first, kv_rows});
      parts.push_back(values);
      return parts;
    }
    if (whole.turns_back) {
      std::vector<TensorPart> parts;
      add_turned_back(base + "q_proj", dim, q, heads, &parts);
      add_turned_back(base + "k_proj", dim, kv, kv_heads, &parts);
      parts.push_back(values);
      return parts;
    }
    TensorPart queries{base + "q_proj", q, first, rows, paired};
    TensorPart keys{base + "k_proj", kv, kv_first, kv_rows, paired};
    if (whole.dynamic_mask) queries.padded = keys.padded = whole.padding(false);
    return {queries, keys, values};
  }
  const std::string name = base + whole.qkv;
  if (whole.fused_by_group) return grouped_parts(name, whole, heads, kv_heads);
  if (whole.fused_pieces > 0) return parts_in_pieces(name, whole, heads);
  const int64_t all = whole.qkv_size();
  if (!sharding.is_cut() && whole.paired == 0) return {{name, all}};
  return {{name, all, first, rows, paired},
          {name, all, q + kv_first, kv_rows, paired},
          {name, all, q + kv + kv_first, kv_rows}};
}

// The weights of the norm `name` of heads [heads.begin, heads.begin + heads.count) of `total`.
std::vector<TensorPart> norm_parts(const std::string& name, const GqaSpec& spec, int64_t total,
                                   const ShardRange& heads) {
  const int64_t dim = spec.head_dim, first = heads.begin * dim, count = heads.count * dim;
  const PairedHeads paired{spec.head_dim, spec.paired};
  std::vector<TensorPart> parts;
  switch (spec.qk_norm) {
    case QkNorm::kWidth:
      return {{name + ".weight", total * dim, first, count, paired}};
    case QkNorm::kOwn:
      return {{name + ".weight", total * dim, first, count, paired, dim}};
    case QkNorm::kOwnListed:
      for (int64_t head = heads.begin; head < heads.begin + heads.count; ++head) {
        parts.push_back({name + ".norms." + std::to_string(head) + ".weight", dim, 0, dim, paired});
      }
      return parts;
    default:
      return {{name + ".weight", dim, 0, dim, paired}};
  }
}

// The gates of the rank's heads.
std::vector<TensorPart> gate_parts(const std::string& base, const GqaSpec& whole,
                                   const Sharding& sharding) {
  const ShardRange heads = shard_of(whole.num_heads, sharding);
  if (whole.gates_in_q) {
    std::vector<TensorPart> parts;
    add_each_second(base + "q_proj", whole.head_dim, whole.q_size(), heads, true, &parts);
    return parts;
  }
  const int64_t each = whole.num_gates() / whole.num_heads;
  return {{base + whole.gate_proj, whole.num_gates(), heads.begin * each, heads.count * each}};
}

bool has_norm_weights(QkNorm norm) {
  return norm != QkNorm::kNone && norm != QkNorm::kUnit && norm != QkNorm::kUnitScaled;
}

// Norms that the op rope_kv does.
bool is_of_rope_kv(QkNorm norm) { return norm == QkNorm::kHead || norm == QkNorm::kTurned; }

// Norms of queries, and of keys where the layer has its own.
Status load_qk_norms(PartLoader& loader, const std::string& base, const GqaSpec& whole, Gqa* out) {
  const Sharding& sharding = loader.sharding();
  const ShardRange heads = shard_of(whole.num_heads, sharding);
  FT_RETURN_IF_ERROR(loader.load_norm_weights(
      norm_parts(base + whole.q_norm, whole, whole.num_heads, heads), &out->q_norm));
  if (whole.kv_of >= 0) return {};
  const ShardRange kv_heads = shard_of_kv_heads(whole.num_kv_heads, sharding);
  return loader.load_norm_weights(
      norm_parts(base + whole.k_norm, whole, whole.num_kv_heads, kv_heads), &out->k_norm);
}

// What scales keys and values of this layer; one that reads another's ignores what files have.
Status load_or_ignore_kv(PartLoader& loader, const std::string& base, const GqaSpec& whole,
                         Gqa* out) {
  if (whole.kv_of < 0) return load_kv_scales(loader, base, whole.num_kv_heads, &out->kv_scales);
  ignore_attention_scales(loader, base);
  for (const char* name : {"k_proj.", "v_proj.", "k_norm.", "v_norm."}) {
    loader.weights().ignore_all(base + name);
  }
  return {};
}

// What scores depend on beside products.
Status load_distances(PartLoader& loader, const GqaSpec& whole, Gqa* out) {
  if (!whole.slopes.empty()) {
    FT_RETURN_IF_ERROR(loader.upload(whole.slopes, "the slopes of heads", &out->slopes));
    out->slopes += out->first_head;
  }
  if (whole.distance_bias != nullptr) {
    FT_RETURN_IF_ERROR(load_distance_bias(loader, whole, &out->distance_bias));
    out->distance_bias += out->first_head * kDistances;
  }
  return {};
}

}  // namespace

Status Gqa::load(PartLoader& loader, const std::string& layer, const GqaSpec& whole) {
  const Sharding& sharding = loader.sharding();
  const std::string base = layer + whole.base;
  spec = part_of(whole, sharding);
  first_head = static_cast<int32_t>(shard_of(whole.num_heads, sharding).begin);
  place_parts(whole, sharding);
  dtype = loader.config().dtype;
  eps = loader.config().rms_norm_eps;
  FT_RETURN_IF_ERROR(
      loader.load_linear(qkv_parts(base, whole, sharding), whole.inputs, whole.qkv_bias, &qkv));
  if (has_norm_weights(whole.qk_norm)) {
    FT_RETURN_IF_ERROR(load_qk_norms(loader, base, whole, this));
    q_part.weights = q_norm;
    k_part.weights = k_norm;
  }
  if (whole.num_gates() > 0) {
    FT_RETURN_IF_ERROR(loader.load_linear(gate_parts(base, whole, sharding), whole.inputs,
                                          whole.gates_in_q && whole.qkv_bias, &gates));
  }
  if (whole.dynamic_mask) FT_RETURN_IF_ERROR(mask.load(loader, base, whole));
  if (whole.distances.exists()) {
    FT_RETURN_IF_ERROR(disentangled.load(loader, base, whole));
  }
  if (whole.index.exists()) FT_RETURN_IF_ERROR(index.load(loader, base, whole));
  if (whole.differs()) FT_RETURN_IF_ERROR(difference.load(loader, base, spec));
  if (whole.sub_norm != nullptr) {
    const RowPart& own = attended_part.part;
    FT_RETURN_IF_ERROR(loader.load_norm_part(base + whole.sub_norm, whole.q_size(),
                                             {own.begin, own.count}, &sub_norm));
    attended_part.weights = sub_norm.weight;
  }
  FT_RETURN_IF_ERROR(load_distances(loader, whole, this));
  FT_RETURN_IF_ERROR(load_or_ignore_kv(loader, base, whole, this));
  if (whole.sinks != nullptr) {
    const ShardRange heads = shard_of(whole.num_heads, sharding);
    const TensorPart part{base + whole.sinks, whole.num_heads, heads.begin, heads.count};
    FT_RETURN_IF_ERROR(loader.load_vector({part}, &sinks));
  }
  FT_RETURN_IF_ERROR(
      loader.load_summed(base + whole.o, whole.o_size(), whole.o_bias, &o, whole.padding(true)));
  // Older exports store these buffers; they follow from the config.
  for (const char* buffer : {"rotary_emb.inv_freq", "bias", "masked_bias"}) {
    loader.weights().ignore(base + buffer);
  }
  return {};
}

// Of the ranks with the same heads of keys the first one tells them.
void Gqa::place_parts(const GqaSpec& whole, const Sharding& sharding) {
  const auto size_of = [&](int64_t heads) { return static_cast<int32_t>(heads * whole.head_dim); };
  const ShardRange heads = shard_of(whole.num_heads, sharding);
  const ShardRange kv_heads = shard_of_kv_heads(whole.num_kv_heads, sharding);
  const RowPart queries{0, size_of(heads.count), size_of(heads.begin), whole.q_size(), 0};
  q_part.part = attended_part.part = queries;
  k_part.part = {queries.count, size_of(kv_heads.count), size_of(kv_heads.begin), whole.kv_size(),
                 1};
  k_part.is_told = is_first_with_kv_heads(whole.num_kv_heads, sharding);
}

void Gqa::Scratch::fit(const GqaSpec& part) {
  qkv_size_ = std::max(qkv_size_, part.qkv_size());
  q_size_ = std::max(q_size_, part.q_size());
  num_gates_ = std::max(num_gates_, part.num_gates());
  num_heads_ = std::max(num_heads_, part.num_heads);
  head_dim_ = std::max(head_dim_, part.head_dim);
  index.fit(part.index, part.num_heads, part.head_dim);
}

Status Gqa::Scratch::take(const ScratchSource& source) {
  if (num_heads_ == 0) return {};
  FT_ASSIGN_OR_RETURN(qkv, source.floats(qkv_size_));
  FT_ASSIGN_OR_RETURN(q, source.act(q_size_));
  FT_ASSIGN_OR_RETURN(attended, source.act(q_size_));
  if (num_gates_ > 0) {
    FT_ASSIGN_OR_RETURN(gates, source.floats(num_gates_));
  }
  FT_RETURN_IF_ERROR(index.take(source));
  return attention.take(source, num_heads_, head_dim_);
}

void Gqa::project(const LayerRows& rows, const void* x, const Scratch& scratch) const {
  multiply(rows, x, qkv, {scratch.qkv}, dtype);
  if (has_gates()) multiply(rows, x, gates, {scratch.gates}, dtype);
  if (index.exists()) index.project(rows, x, scratch.index, dtype);
}

// Over those of all ranks.
void Gqa::norm_all_heads(const LayerRows& rows, const Scratch& scratch) const {
  const NormedPart parts[] = {q_part, k_part};
  const size_t count = spec.kv_of < 0 ? 2 : 1;
  norm_over_ranks(rows, {parts, count},
                  {scratch.qkv, spec.qkv_size(), eps, scratch.qkv, DType::kF32});
}

// The norms that rope_kv does not know. A turn keeps lengths, so that they may stand before it; of
// rows that it scales eps is smaller.
void Gqa::norm_heads(const LayerRows& rows, const Scratch& scratch, float scaling) const {
  const bool whole = spec.qk_norm == QkNorm::kWidth;
  if (whole && rows.ranks != nullptr) return norm_all_heads(rows, scratch);
  const bool centred = spec.qk_norm == QkNorm::kOwn || spec.qk_norm == QkNorm::kOwnListed;
  const auto norm = [&](const float* weight, int32_t column, int32_t heads) {
    norm_columns(rows.queue, {.counts = rows.counts,
                              .x = scratch.qkv,
                              .weight = weight,
                              .max_rows = rows.max_rows,
                              .stride = spec.qkv_size(),
                              .column = column,
                              .groups = whole ? 1 : heads,
                              .size = whole ? heads * spec.head_dim : spec.head_dim,
                              .eps = eps / (scaling * scaling),
                              .centred = centred ? 1 : 0});
  };
  norm(q_norm, 0, spec.num_heads);
  norm(k_norm, spec.q_size(), spec.num_kv_heads);
}

void Gqa::norm_values(const LayerRows& rows, const Scratch& scratch) const {
  norm_columns(rows.queue, {.counts = rows.counts,
                            .x = scratch.qkv,
                            .weight = nullptr,
                            .max_rows = rows.max_rows,
                            .stride = spec.qkv_size(),
                            .column = spec.q_size() + spec.kv_size(),
                            .groups = spec.num_kv_heads,
                            .size = spec.head_dim,
                            .eps = eps});
}

// Layers with fewer or smaller heads than their group use the front of what they have.
KvLayer Gqa::own_kv(const LayerKv& kv) const {
  KvLayer own = kv.kv;
  own.num_kv_heads = spec.num_kv_heads;
  own.head_dim = spec.head_dim;
  return kv_scales.of(own);
}

void Gqa::keep(const LayerRows& rows, const LayerKv& kv, const Scratch& scratch) const {
  KvLayer written = own_kv(kv);
  written.num_kv_heads = spec.own_kv_heads();
  if (spec.values_normed && spec.kv_of < 0) norm_values(rows, scratch);
  if (spec.dynamic_mask) {
    mask.add(rows, spec, dtype, {scratch.qkv, scratch.q, static_cast<float*>(scratch.attended)});
  }
  const bool in_rope = is_of_rope_kv(spec.qk_norm);
  const float normed_scaling = spec.qk_norm == QkNorm::kUnitScaled ? kv.rope.scaling : 1;
  if (spec.qk_norm != QkNorm::kNone && !in_rope) norm_heads(rows, scratch, normed_scaling);
  rope_kv(rows.queue, {.counts = rows.counts,
                       .qkv = scratch.qkv,
                       .q_out = scratch.q,
                       .positions = rows.positions,
                       .kv_slot = kv.kv_slot,
                       .inv_freq = kv.rope.inv_freq,
                       .kv = written,
                       .max_rows = rows.max_rows,
                       .num_heads = spec.num_heads,
                       .rotary_dim = kv.rope.rotary_dim,
                       .scaling = kv.rope.scaling / normed_scaling,
                       .q_norm = in_rope ? q_norm : nullptr,
                       .k_norm = in_rope ? k_norm : nullptr,
                       .norm_eps = eps,
                       .position_shift = kv.position_shift,
                       .clip = spec.clip,
                       .norm_after = spec.qk_norm == QkNorm::kTurned ? 1 : 0,
                       .query_scale = spec.query_scale});
}

void Gqa::attend(const LayerRows& rows, const LayerKv& at, const Scratch& scratch) const {
  if (spec.distances.exists()) {
    return disentangled.attend(rows, at, spec, dtype, {scratch.qkv, scratch.attended});
  }
  // Ahead of rope_kv: attention reads what is chosen before the op ahead of it has ended.
  if (index.exists()) index.choose(rows, at, scratch.index, dtype);
  keep(rows, at, scratch);
  LayerKv kv = at;
  kv.kv = own_kv(at);
  AttentionArgs attention = scratch.attention.args_of(rows, kv);
  attention.q = scratch.q;
  attention.out = scratch.attended;
  attention.num_heads = spec.num_heads;
  attention.scale = spec.scale;
  attention.softcap = spec.softcap;
  attention.chunk = spec.chunk;
  attention.sinks = sinks;
  attention.slopes = slopes;
  attention.distance_bias = distance_bias;
  attention.first_head = first_head;
  if (index.exists()) {
    index.attend(rows, attention, scratch.index);
  } else {
    scratch.attention.run(rows, attention);
  }
  if (spec.differs()) difference.take(rows, dtype, scratch.attended, {scratch.q, scratch.qkv});
  if (has_gates()) gate_attended(rows, scratch);
  if (sub_norm.weight != nullptr) norm_attended(rows, scratch);
}

void Gqa::gate_attended(const LayerRows& rows, const Scratch& scratch) const {
  gate_heads(rows.queue, {.counts = rows.counts,
                          .x = scratch.attended,
                          .gates = scratch.gates,
                          .max_rows = rows.max_rows,
                          .num_heads = spec.num_heads,
                          .head_dim = spec.head_dim,
                          .each_element = spec.gates == HeadGates::kEachElement ? 1 : 0,
                          .gate = spec.gate,
                          .dtype = dtype});
}

// By way of qkv, which nothing reads behind attention.
void Gqa::norm_attended(const LayerRows& rows, const Scratch& scratch) const {
  cast_rows(rows, {scratch.attended, dtype, scratch.qkv, DType::kF32, spec.q_size()});
  if (rows.ranks != nullptr) {
    return norm_over_ranks(rows, {&attended_part, 1},
                           {scratch.qkv, spec.q_size(), eps, scratch.attended, dtype});
  }
  norm_rows(rows, scratch.qkv, nullptr, sub_norm, {spec.q_size(), eps}, {scratch.attended, dtype});
}

double loaded_beyond(const GqaSpec& part, int32_t hidden, const Sharding&) {
  if (part.differs()) return 0.5 * part.q_size() * hidden + HeadDifference::num_weights(part);
  if (part.value_dim == 0) return 0;
  const double heads = part.num_heads + part.num_kv_heads;
  const double behind = heads * (part.head_dim - part.value_dim) * hidden;
  return part.dynamic_mask ? 2 * behind + KeyMask::num_zeros(part) : behind;
}

}  // namespace foretoken
