#include "model/layer/attention/compressed.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "kernels/latent/attend_compressed.h"
#include "kernels/latent/choose_entries.h"
#include "kernels/latent/compress_rows.h"
#include "kernels/latent/head_gemm.h"
#include "kernels/latent/turn_tails.h"

namespace foretoken {
namespace {

// A bias that the file has as a matrix [ratio, width].
Status load_position_bias(PartLoader& loader, const std::string& name, int64_t ratio, int64_t width,
                          const float** out) {
  TensorPart part{name, ratio * width, 0, ratio * width};
  part.row_size = width;
  return loader.load_vector({part}, out);
}

Status load_compressor(PartLoader& loader, const std::string& base, int32_t ratio, int32_t width,
                       Compressor* out) {
  FT_RETURN_IF_ERROR(load_position_bias(loader, base + "ape", ratio, width, &out->bias));
  return loader.load_norm_weights({{base + "norm.weight", out->head_dim}}, &out->norm);
}

}  // namespace

Status Compressed::load(PartLoader& loader, const std::string& layer, const CompressedSpec& whole) {
  const std::string base = layer + whole.base;
  const ShardRange heads = shard_of(whole.num_heads, loader.sharding());
  const ShardRange groups = shard_of(whole.groups, loader.sharding());
  spec = part_of(whole, loader.sharding());
  dtype = loader.config().dtype;
  eps = loader.config().rms_norm_eps;
  FT_RETURN_IF_ERROR(
      loader.load_linear({{base + "wq_a", whole.q_rank}, {base + "wkv", whole.head_dim}},
                         whole.inputs, false, &first));
  FT_RETURN_IF_ERROR(loader.load_linear(
      {{base + "wq_b", whole.q_size(), heads.begin * whole.head_dim, heads.count * whole.head_dim}},
      whole.q_rank, false, &q_b));
  FT_RETURN_IF_ERROR(loader.load_norm_weights({{base + "q_norm.weight", whole.q_rank}}, &q_norm));
  FT_RETURN_IF_ERROR(
      loader.load_norm_weights({{base + "kv_norm.weight", whole.head_dim}}, &kv_norm));
  FT_RETURN_IF_ERROR(loader.load_vector(
      {{base + "attn_sink", whole.num_heads, heads.begin, heads.count}}, &sinks));
  const int64_t grouped = int64_t{whole.groups} * whole.o_rank;
  const int64_t columns = whole.q_size() / whole.groups;
  TensorPart part{base + "wo_a.weight", grouped, groups.begin * whole.o_rank,
                  groups.count * whole.o_rank};
  part.widened = true;
  const std::vector<TensorPart> parts = {part};
  FT_ASSIGN_OR_RETURN(o_a, loader.weights().matrix(parts, {columns, 0, columns},
                                                   WeightOrder::kPlain, whole.o_rank));
  FT_RETURN_IF_ERROR(loader.load_summed(base + "wo_b", grouped, false, &o_b));
  return whole.ratio > 0 ? load_compressors(loader, base, whole) : Status();
}

Status Compressed::load_compressors(PartLoader& loader, const std::string& base,
                                    const CompressedSpec& whole) {
  const std::string own = base + "compressor.", index = base + "indexer.";
  std::vector<TensorPart> parts = {{own + "wkv", whole.width()}, {own + "wgate", whole.width()}};
  entries.head_dim = whole.head_dim;
  FT_RETURN_IF_ERROR(load_compressor(loader, own, whole.ratio, whole.width(), &entries));
  if (whole.index.exists()) {
    const std::string of_keys = index + "compressor.";
    parts.push_back({of_keys + "wkv", whole.index_width()});
    parts.push_back({of_keys + "wgate", whole.index_width()});
    keys.head_dim = whole.index.head_dim;
    FT_RETURN_IF_ERROR(load_compressor(loader, of_keys, whole.ratio, whole.index_width(), &keys));
    TensorPart of_heads{index + "weights_proj", whole.index.num_heads};
    of_heads.is_exact = true;
    FT_RETURN_IF_ERROR(loader.load_linear({of_heads}, whole.inputs, false, &index_weights));
    const int64_t rows = int64_t{whole.index.num_heads} * whole.index.head_dim;
    FT_RETURN_IF_ERROR(
        loader.load_linear({{index + "wq_b", rows}}, whole.q_rank, false, &index_queries));
  }
  for (TensorPart& part : parts) part.is_exact = true;
  return loader.load_linear(parts, whole.inputs, false, &inputs);
}

void Compressed::Scratch::fit(const CompressedSpec& part) {
  widest_.num_heads = std::max(widest_.num_heads, part.num_heads);
  widest_.head_dim = std::max(widest_.head_dim, part.head_dim);
  widest_.q_rank = std::max(widest_.q_rank, part.q_rank);
  widest_.groups = std::max(widest_.groups, part.groups);
  widest_.o_rank = std::max(widest_.o_rank, part.o_rank);
  compressed_size_ = std::max(compressed_size_, part.compressed_size());
  index.fit(part.index);
}

Status Compressed::Scratch::take(const ScratchSource& source) {
  if (widest_.num_heads == 0) return {};
  FT_ASSIGN_OR_RETURN(first, source.floats(widest_.first_size()));
  FT_ASSIGN_OR_RETURN(q_low, source.act(widest_.q_rank));
  FT_ASSIGN_OR_RETURN(q_whole, source.floats(widest_.q_size()));
  FT_ASSIGN_OR_RETURN(q, source.act(widest_.q_size()));
  FT_ASSIGN_OR_RETURN(attended, source.act(widest_.q_size()));
  FT_ASSIGN_OR_RETURN(grouped, source.act(int64_t{widest_.groups} * widest_.o_rank));
  if (compressed_size_ > 0) {
    FT_ASSIGN_OR_RETURN(compressed, source.floats(compressed_size_));
  }
  context = source.context;
  if (context.are_several()) {
    const int64_t heads = int64_t{widest_.num_heads} * context.size;
    FT_ASSIGN_OR_RETURN(queries, source.act(heads * widest_.head_dim));
    FT_ASSIGN_OR_RETURN(states, source.floats(heads * attention_state_size(widest_.head_dim)));
  }
  return index.take(source);
}

void Compressed::project(const LayerRows& rows, const void* x, const Scratch& scratch) const {
  multiply(rows, x, first, {scratch.first}, dtype);
  if (spec.ratio > 0) multiply(rows, x, inputs, {scratch.compressed}, dtype);
  if (spec.index.exists()) multiply(rows, x, index_weights, {scratch.index.weights}, dtype);
}

void Compressed::make_queries(const LayerRows& rows, const LayerKv& kv,
                              const Scratch& scratch) const {
  TurnTailsArgs turn{.counts = rows.counts,
                     .x = scratch.first,
                     .out = scratch.q_low,
                     .positions = rows.positions,
                     .entry_slot = nullptr,
                     .inv_freq = kv.rope.inv_freq,
                     .norm = q_norm,
                     .x_stride = spec.first_size(),
                     .max_rows = rows.max_rows,
                     .num_heads = 1,
                     .head_dim = spec.q_rank,
                     .rope_dim = 0,
                     .scaling = kv.rope.scaling,
                     .norm_eps = eps,
                     .dtype = dtype,
                     .position_shift = kv.position_shift};
  turn_tails(rows.queue, turn);
  turn.x += spec.q_rank;
  turn.out = kv.kv.k;
  turn.entry_slot = kv.kv_slot;
  turn.context_size = kv.kv.context_size;
  turn.context_rank = kv.kv.context_rank;
  turn.format = kv.kv.format;
  turn.norm = kv_norm;
  turn.head_dim = spec.head_dim;
  turn.rope_dim = spec.rope_dim;
  turn_tails(rows.queue, turn);
  multiply(rows, scratch.q_low, q_b, {scratch.q_whole}, dtype);
  turn.x = scratch.q_whole;
  turn.out = scratch.q;
  turn.entry_slot = nullptr;
  turn.format = KvFormat::kPlain;
  turn.norm = nullptr;
  turn.x_stride = spec.q_size();
  turn.num_heads = spec.num_heads;
  turn_tails(rows.queue, turn);
}

// first: column of the inputs where the compressor's begin.
void Compressed::compress(const LayerRows& rows, const LayerKv& kv, const Scratch& scratch,
                          const Compressor& compressor, int32_t first_column,
                          const CompressedTo& to) const {
  FT_CHECK(kv.state.history != nullptr);
  compress_rows(rows.queue, {.counts = rows.counts,
                             .x = scratch.compressed + first_column,
                             .bias = compressor.bias,
                             .norm = compressor.norm,
                             .inv_freq = kv.rope.inv_freq,
                             .positions = rows.positions,
                             .row_slot = rows.row_slot,
                             .kv_slot = kv.full_slot,
                             .history = kv.state.history + first_column,
                             .entries = to.entries,
                             .x_stride = spec.compressed_size(),
                             .history_rows = kv.state.history_rows,
                             .history_stride = spec.compressed_size(),
                             .block_size = kv.kv.block_size * kv.kv.context_size,
                             .max_rows = rows.max_rows,
                             .head_dim = compressor.head_dim,
                             .ratio = spec.ratio,
                             .overlaps = spec.overlaps ? 1 : 0,
                             .rope_dim = spec.rope_dim,
                             .scaling = kv.rope.scaling,
                             .norm_eps = eps,
                             .dtype = dtype,
                             .format = to.format,
                             .context_size = to.dealt ? kv.kv.context_size : 1,
                             .context_rank = to.dealt ? kv.kv.context_rank : 0});
}

void Compressed::choose(const LayerRows& rows, const LayerKv& kv, const Scratch& scratch) const {
  const IndexSpec& index = spec.index;
  multiply(rows, scratch.q_low, index_queries, {scratch.index.queries}, dtype);
  turn_tails(rows.queue, {.counts = rows.counts,
                          .x = scratch.index.queries,
                          .out = scratch.index.turned,
                          .positions = rows.positions,
                          .entry_slot = nullptr,
                          .inv_freq = kv.rope.inv_freq,
                          .norm = nullptr,
                          .x_stride = index.num_heads * index.head_dim,
                          .max_rows = rows.max_rows,
                          .num_heads = index.num_heads,
                          .head_dim = index.head_dim,
                          .rope_dim = spec.rope_dim,
                          .scaling = kv.rope.scaling,
                          .norm_eps = 0,
                          .dtype = dtype});
  choose_entries(rows.queue, {.counts = rows.counts,
                              .q = scratch.index.turned,
                              .weights = scratch.index.weights,
                              .keys = kv.index_keys,
                              .positions = rows.positions,
                              .row_slot = rows.row_slot,
                              .block_tables = kv.full_tables,
                              .entries = scratch.index.entries,
                              .last = scratch.index.last,
                              .rows = scratch.index.rows,
                              .workspace = scratch.index.workspace,
                              .max_blocks = kv.max_blocks,
                              .block_size = kv.kv.block_size * kv.kv.context_size / spec.ratio,
                              .kv_begin = 0,
                              .max_rows = rows.max_rows,
                              .num_heads = index.num_heads,
                              .head_dim = index.head_dim,
                              .top = index.top,
                              .dtype = dtype,
                              .context_size = kv.kv.context_size,
                              .context_rank = kv.kv.context_rank,
                              .positions_each = spec.ratio});
}

// Of the rank's heads over all entries.
AttendCompressedArgs Compressed::args_of(const LayerRows& rows, const LayerKv& kv,
                                         const Scratch& scratch) const {
  return {.counts = rows.counts,
          .q = scratch.q,
          .out = scratch.attended,
          .positions = rows.positions,
          .row_slot = rows.row_slot,
          .kv = kv.kv.k,
          .window_tables = kv.block_tables,
          .entries = kv.compressed,
          .block_tables = kv.full_tables,
          .chosen = spec.index.exists() ? scratch.index.entries : nullptr,
          .sinks = sinks,
          .inv_freq = kv.rope.inv_freq,
          .max_blocks = kv.max_blocks,
          .block_size = kv.kv.block_size,
          .max_rows = rows.max_rows,
          .num_heads = spec.num_heads,
          .head_dim = spec.head_dim,
          .window = spec.window,
          .ratio = spec.ratio,
          .top = spec.index.top,
          .rope_dim = spec.rope_dim,
          .scale = spec.scale,
          .scaling = kv.rope.scaling,
          .dtype = dtype,
          .kv_begin = kv.kv_begin,
          .position_shift = kv.position_shift,
          .format = kv.kv.format};
}

// Each rank attends to its own entries with the heads of all; the sums turn back once they are
// whole, by way of q_whole, which nothing reads behind the queries.
void Compressed::merge_ranks(const LayerRows& rows, const LayerKv& kv, const Scratch& scratch,
                             AttendCompressedArgs args) const {
  const ContextRanks& context = scratch.context;
  gather_parts(rows.queue,
               {.counts = rows.counts,
                .in = scratch.q,
                .from = nullptr,
                .out = scratch.queries,
                .ranks = context,
                .max_rows = rows.max_rows,
                .pieces = 1,
                .piece_bytes = spec.q_size() * static_cast<int32_t>(dtype_size(dtype))});
  args.q = scratch.queries;
  args.out = nullptr;
  args.sinks = nullptr;
  args.num_heads = spec.num_heads * context.size;
  args.context_size = kv.kv.context_size;
  args.context_rank = kv.kv.context_rank;
  args.chosen_last = args.chosen != nullptr ? scratch.index.last : nullptr;
  args.states = scratch.states;
  args.part_heads = spec.num_heads;
  attend_compressed(rows.queue, args);
  merge_partials(rows.queue, {.counts = rows.counts,
                              .states = scratch.states,
                              .out = scratch.q_whole,
                              .sinks = sinks,
                              .ranks = context,
                              .max_rows = rows.max_rows,
                              .num_heads = spec.num_heads,
                              .value_size = spec.head_dim,
                              .dtype = DType::kF32});
  turn_tails(rows.queue, {.counts = rows.counts,
                          .x = scratch.q_whole,
                          .out = scratch.attended,
                          .positions = rows.positions,
                          .entry_slot = nullptr,
                          .inv_freq = kv.rope.inv_freq,
                          .norm = nullptr,
                          .x_stride = spec.q_size(),
                          .max_rows = rows.max_rows,
                          .num_heads = spec.num_heads,
                          .head_dim = spec.head_dim,
                          .rope_dim = spec.rope_dim,
                          .scaling = kv.rope.scaling,
                          .norm_eps = 0,
                          .dtype = dtype,
                          .position_shift = kv.position_shift,
                          .back = true});
}

void Compressed::attend(const LayerRows& rows, const LayerKv& kv, const Scratch& scratch) const {
  make_queries(rows, kv, scratch);
  if (spec.ratio > 0) compress(rows, kv, scratch, entries, 0, {kv.compressed, kv.kv.format, true});
  if (spec.index.exists()) {
    compress(rows, kv, scratch, keys, 2 * spec.width(), {kv.index_keys, KvFormat::kPlain});
    choose(rows, kv, scratch);
  }
  const AttendCompressedArgs args = args_of(rows, kv, scratch);
  if (scratch.context.are_several()) {
    merge_ranks(rows, kv, scratch, args);
  } else {
    attend_compressed(rows.queue, args);
  }
  const int32_t columns = spec.q_size() / spec.groups;
  head_gemm(rows.queue, {.counts = rows.counts,
                         .x = scratch.attended,
                         .weight = o_a.get(),
                         .y = scratch.grouped,
                         .max_rows = rows.max_rows,
                         .num_heads = spec.groups,
                         .n = spec.o_rank,
                         .k = columns,
                         .x_stride = columns,
                         .y_stride = spec.o_rank,
                         .dtype = dtype});
}

}  // namespace foretoken
