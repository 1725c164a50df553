#include "model/layer/attention/latent_index.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "kernels/latent/choose_entries.h"
#include "kernels/latent/compress_rows.h"
#include "kernels/latent/index_rows.h"
#include "kernels/latent/turn_tails.h"
#include "kernels/rows/rms_norm.h"

namespace foretoken {
namespace {

constexpr int32_t kCarriedColumns = 4;  // of rows that travel, at least

// Numbers of rows travel as floats of their bits.
float* bits_of(int32_t* numbers) { return reinterpret_cast<float*>(numbers); }

struct Column {
  float* x;
  int32_t stride;
  int32_t offset;
};
void move_column(const LayerRows& rows, const Column& from, const Column& to) {
  move_rows(rows.queue, {.counts = rows.counts,
                         .in = from.x + from.offset,
                         .out = to.x,
                         .from = nullptr,
                         .to = nullptr,
                         .row_kind = RowKind::kToken,
                         .max_rows = rows.max_rows,
                         .width = 1,
                         .out_stride = to.stride,
                         .out_offset = to.offset,
                         .in_dtype = DType::kF32,
                         .out_dtype = DType::kF32,
                         .in_stride = from.stride});
}

// A vector of a key, in the order of its matrix's rows.
Status load_index_norm(PartLoader& loader, const std::string& name, const PairedHeads& paired,
                       const float** out) {
  const int64_t size = paired.rows;
  FT_RETURN_IF_ERROR(loader.weights().expect(name, {&size, 1}));
  std::vector<float> file(static_cast<size_t>(size), 1.0f);
  if (loader.weights().has_optional(name)) {
    FT_ASSIGN_OR_RETURN(file, loader.weights().numbers(name));
  }
  std::vector<float> ordered;
  for (int64_t i = 0; i < size; ++i) {
    ordered.push_back(file[static_cast<size_t>(paired.source_of(i))]);
  }
  return loader.upload(ordered, "the norm of an indexer", out);
}

}  // namespace

Status LatentIndex::load(PartLoader& loader, const std::string& base, const LatentSpec& whole) {
  spec = whole.index;
  rope_dim = whole.still ? 0 : whole.rope_dim;
  if (!spec.own) return {};
  const PairedHeads paired{spec.head_dim, spec.paired ? rope_dim : 0, 0,
                           spec.turns_last ? rope_dim : 0};
  const auto matrix = [&](const char* name, int64_t rows, const PairedHeads& heads) {
    return TensorPart{base + name, rows, 0, -1, heads};
  };
  TensorPart of_heads = matrix("weights_proj", spec.num_heads, {});
  of_heads.is_exact = true;
  FT_RETURN_IF_ERROR(
      loader.load_linear({matrix("wk", spec.head_dim, paired)}, whole.inputs, false, &key));
  FT_RETURN_IF_ERROR(loader.load_linear({of_heads}, whole.inputs, false, &weights));
  FT_RETURN_IF_ERROR(
      loader.load_linear({matrix("wq_b", int64_t{spec.num_heads} * spec.head_dim, paired)},
                         whole.q_rank, false, &queries));
  FT_RETURN_IF_ERROR(load_index_norm(loader, base + "k_norm.weight", paired, &norm_weight));
  FT_RETURN_IF_ERROR(load_index_norm(loader, base + "k_norm.bias", paired, &norm_bias));
  return spec.pool > 1 ? load_pool(loader, base, whole) : Status();
}

Status LatentIndex::load_pool(PartLoader& loader, const std::string& base,
                              const LatentSpec& whole) {
  TensorPart gate{base + "index_kpool_compress_gate", spec.head_dim};
  gate.is_exact = true;
  const std::vector<TensorPart> parts = {gate};
  FT_ASSIGN_OR_RETURN(gates.weight, loader.weights().matrix(parts, {whole.inputs, 0, whole.inputs},
                                                            WeightOrder::kPlain, spec.head_dim));
  gates.inputs = whole.inputs;
  gates.outputs = spec.head_dim;
  const int64_t size = int64_t{spec.pool} * spec.head_dim;
  TensorPart bias{base + "index_kpool_compress_ape", size, 0, size};
  bias.row_size = spec.head_dim;
  return loader.load_vector({bias}, &gate_bias);
}

void LatentIndex::Scratch::fit(const IndexSpec& spec) {
  widest_.num_heads = std::max(widest_.num_heads, spec.num_heads);
  widest_.head_dim = std::max(widest_.head_dim, spec.head_dim);
  widest_.top = std::max(widest_.top, spec.top);
  widest_.pool = std::max(widest_.pool, spec.pool);
}

Status LatentIndex::Scratch::take(const ScratchSource& source) {
  if (!widest_.exists()) return {};
  const int64_t width = int64_t{widest_.num_heads} * widest_.head_dim;
  FT_ASSIGN_OR_RETURN(key, source.floats(widest_.head_dim));
  FT_ASSIGN_OR_RETURN(weights, source.floats(widest_.num_heads));
  FT_ASSIGN_OR_RETURN(queries, source.floats(width));
  FT_ASSIGN_OR_RETURN(turned, source.act(width));
  const auto numbers = [&](int32_t each) {
    return source.arena.take_array<int32_t>(
        static_cast<size_t>(source.max_rows) * static_cast<size_t>(each), ScratchSource::kWhat);
  };
  if (widest_.pool > 1) {
    FT_ASSIGN_OR_RETURN(gates, source.floats(widest_.head_dim));
    FT_ASSIGN_OR_RETURN(inputs, source.floats(2 * int64_t{widest_.head_dim}));
  }
  FT_ASSIGN_OR_RETURN(entries, numbers(widest_.listed()));
  FT_ASSIGN_OR_RETURN(last, numbers(1));
  FT_ASSIGN_OR_RETURN(rows, numbers(1));
  FT_ASSIGN_OR_RETURN(carried, source.floats(kCarriedColumns));
  FT_ASSIGN_OR_RETURN(workspace, source.arena.take_array<float>(kMaxScores, ScratchSource::kWhat));
  return {};
}

void LatentIndex::Scratch::cross(const LayerRows& of, const StageCut& cut) const {
  if (cut.sends) {
    move_column(of, {bits_of(last), 1, 0}, {carried, kCarriedColumns, 0});
    move_column(of, {bits_of(rows), 1, 0}, {carried, kCarriedColumns, 1});
  }
  cut.cross(of, carried, kCarriedColumns);
  cut.cross(of, bits_of(entries), widest_.listed());
  if (cut.sends) return;
  move_column(of, {carried, kCarriedColumns, 0}, {bits_of(last), 1, 0});
  move_column(of, {carried, kCarriedColumns, 1}, {bits_of(rows), 1, 0});
}

void LatentIndex::project(const LayerRows& rows, const void* x, const Scratch& scratch,
                          DType dtype) const {
  if (!spec.own) return;
  multiply(rows, x, key, {scratch.key}, dtype);
  multiply(rows, x, weights, {scratch.weights}, dtype);
  if (spec.pool > 1) multiply(rows, x, gates, {scratch.gates}, dtype);
}

void LatentIndex::keep_keys(const LayerRows& rows, const LayerKv& kv, const Scratch& scratch,
                            DType dtype) const {
  index_rows(rows.queue, {.counts = rows.counts,
                          .key = scratch.key,
                          .queries = scratch.queries,
                          .q_out = scratch.turned,
                          .positions = rows.positions,
                          .kv_slot = kv.kv_slot,
                          .inv_freq = kv.rope.inv_freq,
                          .norm_weight = norm_weight,
                          .norm_bias = norm_bias,
                          .keys = kv.index_keys,
                          .max_rows = rows.max_rows,
                          .num_heads = spec.num_heads,
                          .head_dim = spec.head_dim,
                          .rope_dim = rope_dim,
                          .scaling = kv.rope.scaling,
                          .norm_eps = spec.norm_eps,
                          .dtype = dtype,
                          .position_shift = kv.position_shift});
}

// Each position's key is normed, and lies before its gates.
void LatentIndex::norm_inputs(const LayerRows& rows, const Scratch& scratch) const {
  rms_norm(rows.queue, {.counts = rows.counts,
                        .residual = scratch.key,
                        .delta = nullptr,
                        .weight = norm_weight,
                        .out = scratch.key,
                        .row_index = nullptr,
                        .row_offset = 0,
                        .max_rows = rows.max_rows,
                        .hidden = spec.head_dim,
                        .eps = spec.norm_eps,
                        .out_dtype = DType::kF32,
                        .bias = norm_bias,
                        .centred = 1});
  MoveRowsArgs move{.counts = rows.counts,
                    .in = scratch.key,
                    .out = scratch.inputs,
                    .from = nullptr,
                    .to = nullptr,
                    .row_kind = RowKind::kToken,
                    .max_rows = rows.max_rows,
                    .width = spec.head_dim,
                    .out_stride = 2 * spec.head_dim,
                    .out_offset = 0,
                    .in_dtype = DType::kF32,
                    .out_dtype = DType::kF32};
  move_rows(rows.queue, move);
  move.in = scratch.gates;
  move.out_offset = spec.head_dim;
  move_rows(rows.queue, move);
}

// The last of the positions that have one key in common makes it.
void LatentIndex::keep_pooled_keys(const LayerRows& rows, const LayerKv& kv, const Scratch& scratch,
                                   DType dtype) const {
  norm_inputs(rows, scratch);
  FT_CHECK(kv.state.history != nullptr);
  compress_rows(rows.queue, {.counts = rows.counts,
                             .x = scratch.inputs,
                             .bias = gate_bias,
                             .norm = nullptr,
                             .inv_freq = nullptr,
                             .positions = rows.positions,
                             .row_slot = rows.row_slot,
                             .kv_slot = kv.full_slot,
                             .history = kv.state.history,
                             .entries = kv.index_keys,
                             .x_stride = 2 * spec.head_dim,
                             .history_rows = kv.state.history_rows,
                             .history_stride = 2 * spec.head_dim,
                             .block_size = kv.kv.block_size * kv.kv.context_size,
                             .max_rows = rows.max_rows,
                             .head_dim = spec.head_dim,
                             .ratio = spec.pool,
                             .overlaps = 0,
                             .rope_dim = 0,
                             .scaling = 1,
                             .norm_eps = 0,
                             .dtype = dtype});
  turn_tails(rows.queue, {.counts = rows.counts,
                          .x = scratch.queries,
                          .out = scratch.turned,
                          .positions = rows.positions,
                          .entry_slot = nullptr,
                          .inv_freq = nullptr,
                          .norm = nullptr,
                          .x_stride = spec.num_heads * spec.head_dim,
                          .max_rows = rows.max_rows,
                          .num_heads = spec.num_heads,
                          .head_dim = spec.head_dim,
                          .rope_dim = 0,
                          .scaling = 1,
                          .norm_eps = 0,
                          .dtype = dtype});
}

void LatentIndex::choose(const LayerRows& rows, const LayerKv& kv, const void* q_low,
                         const Scratch& scratch, DType dtype) const {
  if (!spec.own) return;
  multiply(rows, q_low, queries, {scratch.queries}, dtype);
  if (spec.pool > 1) {
    keep_pooled_keys(rows, kv, scratch, dtype);
  } else {
    keep_keys(rows, kv, scratch, dtype);
  }
  choose_entries(rows.queue,
                 {.counts = rows.counts,
                  .q = scratch.turned,
                  .weights = scratch.weights,
                  .keys = kv.index_keys,
                  .positions = kv.attends_from != nullptr ? kv.attends_from : rows.positions,
                  .row_slot = rows.row_slot,
                  .block_tables = kv.block_tables,
                  .entries = scratch.entries,
                  .last = scratch.last,
                  .rows = scratch.rows,
                  .workspace = scratch.workspace,
                  .max_blocks = kv.max_blocks,
                  .block_size = kv.kv.block_size * kv.kv.context_size / spec.pool,
                  .kv_begin = kv.kv_begin,
                  .max_rows = rows.max_rows,
                  .num_heads = spec.num_heads,
                  .head_dim = spec.head_dim,
                  .top = spec.top,
                  .dtype = dtype,
                  .context_size = kv.kv.context_size,
                  .context_rank = kv.kv.context_rank,
                  .positions_each = spec.pool,
                  .spreads = spec.pool > 1 ? 1 : 0});
}

void LatentIndex::restrict_to_chosen(const Scratch& scratch, AttentionArgs* attention) const {
  attention->positions = scratch.last;
  attention->row_slot = scratch.rows;
  attention->block_tables = scratch.entries;
  attention->max_blocks = spec.listed();
  attention->kv.block_size = 1;
  attention->kv_begin = 0;
  attention->runs = RunLengths::kShort;
  attention->repeats = false;
}

}  // namespace foretoken
