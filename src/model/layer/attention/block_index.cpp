#include "model/layer/attention/block_index.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/latent/choose_blocks.h"
#include "kernels/latent/index_rows.h"

namespace foretoken {

Status BlockIndex::load(PartLoader& loader, const std::string& layer, const GqaSpec& whole) {
  const int64_t dim = whole.index.head_dim;
  const ShardRange heads = shard_of_kv_heads(whole.num_kv_heads, loader.sharding());
  spec = part_of(whole, loader.sharding()).index;
  eps = loader.config().rms_norm_eps;
  // What transformers writes has the second form.
  const bool has_own = loader.weights().has_optional(layer + "index_k_proj.weight");
  const std::string base = layer + (has_own ? "index_" : "indexer.");
  FT_RETURN_IF_ERROR(loader.load_linear(
      {{base + "q_proj", whole.num_kv_heads * dim, heads.begin * dim, heads.count * dim},
       {base + "k_proj", dim}},
      whole.inputs, false, &products));
  FT_RETURN_IF_ERROR(loader.load_norm_weights({{base + "q_norm.weight", dim}}, &q_norm));
  return loader.load_norm_weights({{base + "k_norm.weight", dim}}, &k_norm);
}

void BlockIndex::Scratch::fit(const BlockIndexSpec& spec, int32_t num_heads, int32_t head_dim) {
  if (!spec.exists()) return;
  widest_.num_heads = std::max(widest_.num_heads, spec.num_heads);
  widest_.head_dim = std::max(widest_.head_dim, spec.head_dim);
  widest_.block = std::max(widest_.block, spec.block);
  widest_.top = std::max(widest_.top, spec.top);
  group_ = std::max(group_, num_heads / spec.num_heads);
  head_dim_ = std::max(head_dim_, head_dim);
}

Status BlockIndex::Scratch::take(const ScratchSource& source) {
  if (!widest_.exists()) return {};
  const int64_t width = int64_t{widest_.num_heads} * widest_.head_dim;
  FT_ASSIGN_OR_RETURN(products, source.floats(width + widest_.head_dim));
  FT_ASSIGN_OR_RETURN(queries, source.act(width));
  FT_ASSIGN_OR_RETURN(rows_of_heads, source.arena.take_array<StepCounts>(1, ScratchSource::kWhat));
  page = chosen_page_size(widest_.block, source.kv_block_size, 0);
  ScratchSource of_heads = source;
  of_heads.max_rows = source.max_rows * widest_.num_heads;
  const auto numbers = [&](int32_t each) {
    return source.arena.take_array<int32_t>(
        static_cast<size_t>(of_heads.max_rows) * static_cast<size_t>(each), ScratchSource::kWhat);
  };
  const int32_t num_pages = widest_.top * (widest_.block / page);
  FT_ASSIGN_OR_RETURN(pages, numbers(num_pages));
  if (source.attention.has_expressions()) {
    FT_ASSIGN_OR_RETURN(begins, numbers(num_pages));
  }
  FT_ASSIGN_OR_RETURN(last, numbers(1));
  FT_ASSIGN_OR_RETURN(rows, numbers(1));
  FT_ASSIGN_OR_RETURN(workspace, source.arena.take_array<float>(kMaxScores, ScratchSource::kWhat));
  return attention.take(of_heads, group_, head_dim_);
}

void BlockIndex::project(const LayerRows& rows, const void* x, const Scratch& scratch,
                         DType dtype) const {
  multiply(rows, x, products, {scratch.products}, dtype);
}

void BlockIndex::keep(const LayerRows& rows, const LayerKv& kv, const Scratch& scratch,
                      DType dtype) const {
  index_rows(rows.queue, {.counts = rows.counts,
                          .key = scratch.products + spec.num_heads * spec.head_dim,
                          .queries = scratch.products,
                          .q_out = scratch.queries,
                          .positions = rows.positions,
                          .kv_slot = kv.kv_slot,
                          .inv_freq = kv.rope.inv_freq,
                          .norm_weight = k_norm,
                          .norm_bias = nullptr,
                          .keys = kv.index_keys,
                          .max_rows = rows.max_rows,
                          .num_heads = spec.num_heads,
                          .head_dim = spec.head_dim,
                          .rope_dim = kv.rope.rotary_dim,
                          .scaling = kv.rope.scaling,
                          .norm_eps = eps,
                          .dtype = dtype,
                          .position_shift = kv.position_shift,
                          .query_norm = q_norm,
                          .stride = (spec.num_heads + 1) * spec.head_dim});
}

void BlockIndex::choose(const LayerRows& rows, const LayerKv& kv, const Scratch& scratch,
                        DType dtype) const {
  keep(rows, kv, scratch, dtype);
  const int32_t block_size = kv.kv.block_size * kv.kv.context_size;
  const int32_t page = chosen_page_size(spec.block, block_size, kv.kv_begin);
  FT_CHECK(page >= scratch.page && page % kv.kv.context_size == 0);
  choose_blocks(rows.queue,
                {.counts = rows.counts,
                 .q = scratch.queries,
                 .keys = kv.index_keys,
                 .positions = kv.attends_from != nullptr ? kv.attends_from : rows.positions,
                 .row_slot = rows.row_slot,
                 .block_tables = kv.block_tables,
                 .rows_of_heads = scratch.rows_of_heads,
                 .pages = scratch.pages,
                 .last = scratch.last,
                 .rows = scratch.rows,
                 .workspace = scratch.workspace,
                 .max_blocks = kv.max_blocks,
                 .block_size = block_size,
                 .kv_begin = kv.kv_begin,
                 .max_rows = rows.max_rows,
                 .num_heads = spec.num_heads,
                 .head_dim = spec.head_dim,
                 .choice = spec.block,
                 .page = page,
                 .top = spec.top,
                 .first = spec.first,
                 .nearest = spec.nearest,
                 .dtype = dtype,
                 .begins = scratch.begins});
}

void BlockIndex::attend(const LayerRows& rows, AttentionArgs attention,
                        const Scratch& scratch) const {
  const KvLayer& kv = attention.kv;
  const int32_t page =
      chosen_page_size(spec.block, kv.block_size * kv.context_size, attention.kv_begin);
  attention.of_heads = {spec.num_heads, attention.positions, scratch.begins};
  attention.counts = scratch.rows_of_heads;
  attention.positions = scratch.last;
  attention.row_slot = scratch.rows;
  attention.block_tables = scratch.pages;
  attention.workspace = scratch.attention.workspace;
  attention.workspace_floats = scratch.attention.workspace_floats;
  attention.sync = scratch.attention.sync;
  attention.max_blocks = spec.top * (spec.block / page);
  attention.max_rows = rows.max_rows * spec.num_heads;
  attention.num_heads /= spec.num_heads;
  attention.kv.num_kv_heads = 1;
  attention.kv.block_size = page / kv.context_size;
  attention.kv_begin = 0;
  attention.runs = RunLengths::kShort;
  attention.repeats = false;
  scratch.attention.run(rows, attention);
}

}  // namespace foretoken
