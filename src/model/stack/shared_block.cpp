#include "model/stack/shared_block.h"

#include <algorithm>
#include <numeric>

#include "kernels/gemm/gated_act.h"

namespace foretoken {
namespace {

// Rows that go to columns [at, at + width) of wider ones.
void put_columns(const LayerRows& rows, const float* from, int32_t width, int32_t at, int32_t wide,
                 float* to) {
  move_rows(rows.queue, {.counts = rows.counts,
                         .in = from,
                         .out = to,
                         .from = nullptr,
                         .to = nullptr,
                         .row_kind = RowKind::kToken,
                         .max_rows = rows.max_rows,
                         .width = width,
                         .out_stride = wide,
                         .out_offset = at,
                         .in_dtype = DType::kF32,
                         .out_dtype = DType::kF32});
}

// y [max_rows, columns of all parts] += up(low(x)).
void add_low_rank(const LayerRows& rows, const LowRank& adapter, const void* x, float* y,
                  const SharedBlock::Scratch& scratch, DType dtype) {
  if (!adapter.exists()) return;
  multiply(rows, x, adapter.low, {scratch.low}, dtype);
  const int32_t all = adapter.columns();
  int32_t at = 0, from = 0;
  for (const Linear& up : adapter.ups) {
    cast_rows(rows, {scratch.low + from, DType::kF32, scratch.low_act, dtype, up.inputs,
                     adapter.low.outputs});
    if (adapter.ups.size() == 1) return multiply(rows, scratch.low_act, up, {y, true}, dtype);
    multiply(rows, scratch.low_act, up, {scratch.part}, dtype);
    put_columns(rows, scratch.part, up.outputs, at, all, scratch.added);
    at += up.outputs;
    from += up.inputs;
  }
  // The sum stays in y; what leaves the norm without weights is not read.
  norm_rows(rows, y, scratch.added, {}, {all, 1.0f}, {scratch.added, DType::kF32});
}

// The rows of a rank's heads in a tensor of queries, keys or values.
TensorPart part_of_heads(const std::string& name, const SharedSpec& spec, const ShardRange& heads) {
  return {name, int64_t{spec.num_heads} * spec.head_dim, heads.begin * spec.head_dim,
          heads.count * spec.head_dim};
}

Status load_attention_adapters(PartLoader& loader, const std::string& base, const SharedSpec& spec,
                               LowRank* out) {
  if (!spec.adapts_attention) return {};
  const std::string use = "_adapter_list." + std::to_string(spec.use);
  const std::string names[] = {base + "self_attn.linear_q" + use, base + "self_attn.linear_k" + use,
                               base + "self_attn.linear_v" + use};
  std::vector<TensorPart> low;
  for (const std::string& name : names) low.push_back({name + ".0", spec.rank});
  FT_RETURN_IF_ERROR(loader.load_linear(low, 2 * loader.config().hidden_size, false, &out->low));
  const ShardRange heads = shard_of(spec.num_heads, loader.sharding());
  out->ups.resize(std::size(names));
  for (size_t i = 0; i < std::size(names); ++i) {
    FT_RETURN_IF_ERROR(loader.load_linear({part_of_heads(names[i] + ".1", spec, heads)}, spec.rank,
                                          false, &out->ups[i]));
  }
  return {};
}

// Gates, then ups, of the rank's inner columns.
std::vector<TensorPart> parts_of_inner(const std::string& name, const SharedSpec& spec,
                                       const Sharding& sharding) {
  const int64_t inner = spec.inner;
  const ShardRange own = shard_of(inner, sharding);
  return {{name, 2 * inner, own.begin, own.count}, {name, 2 * inner, inner + own.begin, own.count}};
}

Status load_mlp(PartLoader& loader, const std::string& base, const SharedSpec& spec,
                SharedBlock* out) {
  const int32_t hidden = loader.config().hidden_size;
  const std::string name = base + "feed_forward.";
  FT_RETURN_IF_ERROR(
      loader.load_linear(parts_of_inner(name + "gate_up_proj", spec, loader.sharding()), hidden,
                         false, &out->gate_up));
  FT_RETURN_IF_ERROR(loader.load_summed(name + "down_proj", spec.inner, false, &out->down));
  const std::string use = name + "gate_up_proj_adapter_list." + std::to_string(spec.use);
  FT_RETURN_IF_ERROR(loader.load_linear({{use + ".0", spec.rank}}, hidden, false, &out->mlp.low));
  out->mlp.ups.resize(1);
  return loader.load_linear(parts_of_inner(use + ".1", spec, loader.sharding()), spec.rank, false,
                            &out->mlp.ups[0]);
}

}  // namespace

int32_t LowRank::columns() const {
  return std::accumulate(ups.begin(), ups.end(), 0,
                         [](int32_t sum, const Linear& up) { return sum + up.outputs; });
}

std::string shared_base(PartLoader& loader, const std::string& base, const SharedSpec& spec) {
  if (loader.weights().has_optional(base + SharedSpec::kBlock + "input_layernorm.weight")) {
    return base;
  }
  const size_t dot = base.rfind('.', base.size() - 2);
  return base.substr(0, dot + 1) + std::to_string(spec.from) + ".";
}

Status SharedBlock::load(PartLoader& loader, const std::string& base, const SharedSpec& spec) {
  if (!spec.exists()) return {};
  const int32_t hidden = loader.config().hidden_size;
  const std::string shared = shared_base(loader, base, spec) + SharedSpec::kBlock;
  // Adapters of all layers lie in each copy of a block.
  loader.weights().ignore_all(base + SharedSpec::kBlock);
  activation = spec.activation;
  FT_RETURN_IF_ERROR(loader.load_norm(shared + "input_layernorm", 2 * hidden, &wide_norm));
  FT_RETURN_IF_ERROR(loader.load_norm(shared + "pre_ff_layernorm", hidden, &mlp_norm));
  FT_RETURN_IF_ERROR(load_attention_adapters(loader, shared, spec, &attention));
  FT_RETURN_IF_ERROR(load_mlp(loader, shared, spec, this));
  FT_RETURN_IF_ERROR(loader.load_linear({{base + "linear", hidden}}, hidden, false, &out));
  return loader.load_norm(base + "mamba_decoder.input_layernorm", hidden, &side_norm);
}

void SharedBlock::Scratch::fit(const SharedBlock& block) {
  if (!block.exists()) return;
  hidden_ = std::max(hidden_, block.out.outputs);
  inner_ = std::max(inner_, block.down.inputs);
  low_ = std::max({low_, block.attention.low.outputs, block.mlp.low.outputs});
  columns_ = std::max(columns_, block.attention.columns());
}

Status SharedBlock::Scratch::take(const ScratchSource& source) {
  if (!exists()) return {};
  FT_ASSIGN_OR_RETURN(pair, source.floats(2 * int64_t{hidden_}));
  FT_ASSIGN_OR_RETURN(sum, source.floats(hidden_));
  if (inner_ == 0) return {};
  FT_ASSIGN_OR_RETURN(wide, source.act(2 * int64_t{hidden_}));
  FT_ASSIGN_OR_RETURN(gate_up, source.floats(2 * int64_t{inner_}));
  FT_ASSIGN_OR_RETURN(gated, source.act(inner_));
  FT_ASSIGN_OR_RETURN(low, source.floats(low_));
  FT_ASSIGN_OR_RETURN(low_act, source.act(low_));
  if (columns_ == 0) return {};
  FT_ASSIGN_OR_RETURN(part, source.floats(columns_));
  FT_ASSIGN_OR_RETURN(added, source.floats(columns_));
  return {};
}

void SharedBlock::keep_embeddings(const LayerRows& rows, const float* x, int32_t hidden,
                                  const Scratch& scratch) {
  put_columns(rows, x, hidden, hidden, 2 * hidden, scratch.pair);
}

void SharedBlock::cross(const LayerRows& rows, const StageCut& cut, int32_t hidden,
                        const Scratch& scratch) {
  if (cut.sends) {
    cast_rows(rows,
              {scratch.pair + hidden, DType::kF32, scratch.sum, DType::kF32, hidden, 2 * hidden});
  }
  cut.cross(rows, scratch.sum, hidden);
  if (!cut.sends) keep_embeddings(rows, scratch.sum, hidden, scratch);
}

void SharedBlock::widen(const LayerRows& rows, const float* residual, const NormSize& size,
                        const Scratch& scratch, DType dtype) const {
  put_columns(rows, residual, size.hidden, 0, 2 * size.hidden, scratch.pair);
  norm_rows(rows, scratch.pair, nullptr, wide_norm, {2 * size.hidden, size.eps},
            {scratch.wide, dtype});
}

void SharedBlock::adapt_attention(const LayerRows& rows, float* qkv, const Scratch& scratch,
                                  DType dtype) const {
  add_low_rank(rows, attention, scratch.wide, qkv, scratch, dtype);
}

void SharedBlock::run_mlp(const LayerRows& rows, const void* x, float* to, const Scratch& scratch,
                          DType dtype) const {
  multiply(rows, x, gate_up, {scratch.gate_up}, dtype);
  add_low_rank(rows, mlp, x, scratch.gate_up, scratch, dtype);
  gated_act(rows.queue, {.counts = rows.counts,
                         .gate_up = scratch.gate_up,
                         .out = scratch.gated,
                         .max_rows = rows.max_rows,
                         .size = down.inputs,
                         .activation = activation,
                         .out_dtype = dtype});
  multiply(rows, scratch.gated, down, {to}, dtype);
}

}  // namespace foretoken
