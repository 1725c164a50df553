#include "model/layer/attention/attention_scratch.h"

#include <algorithm>

namespace foretoken {

Status AttentionScratch::take(const ScratchSource& source, int32_t num_heads, int32_t head_dim) {
  backend = &source.attention;
  context = source.context;
  const int32_t heads = num_heads * context.size;
  workspace_floats = backend->workspace_floats(source.device, source.max_rows, heads, head_dim);
  const char* what = ScratchSource::kWhat;
  FT_ASSIGN_OR_RETURN(workspace,
                      source.arena.take_array<float>(static_cast<size_t>(workspace_floats), what));
  const auto sync_rows = static_cast<size_t>(std::min(source.max_rows, AttentionArgs::kSyncRows));
  FT_ASSIGN_OR_RETURN(
      sync, source.arena.take_array<uint32_t>(sync_rows * static_cast<size_t>(heads), what));
  if (!context.are_several()) return {};
  FT_ASSIGN_OR_RETURN(queries, source.act(int64_t{heads} * head_dim));
  FT_ASSIGN_OR_RETURN(states, source.floats(int64_t{heads} * attention_state_size(head_dim)));
  return {};
}

AttentionArgs AttentionScratch::args_of(const LayerRows& rows, const LayerKv& kv) const {
  return {.counts = rows.counts,
          .q = nullptr,
          .out = nullptr,
          .positions = kv.attends_from != nullptr ? kv.attends_from : rows.positions,
          .row_slot = rows.row_slot,
          .block_tables = kv.block_tables,
          .workspace = workspace,
          .workspace_floats = workspace_floats,
          .sync = sync,
          .kv = kv.kv,
          .max_blocks = kv.max_blocks,
          .max_rows = rows.max_rows,
          .num_heads = 0,
          .window = kv.window,
          .scale = 1,
          .kv_begin = kv.kv_begin,
          .runs = rows.runs,
          .repeats = kv.repeats,
          .last_seen = kv.last_seen};
}

// Over shared positions each rank attends to its own with the heads of all.
void AttentionScratch::run(const LayerRows& rows, const AttentionArgs& args) const {
  if (!context.are_several()) return backend->run(rows.queue, args);
  const auto element = static_cast<int32_t>(dtype_size(args.kv.dtype));
  gather_parts(rows.queue, {.counts = args.counts,
                            .in = args.q,
                            .from = nullptr,
                            .out = queries,
                            .ranks = context,
                            .max_rows = args.max_rows,
                            .pieces = 1,
                            .piece_bytes = args.num_heads * args.kv.head_dim * element});
  AttentionArgs own = args;
  own.q = queries;
  own.out = nullptr;
  own.num_heads = args.num_heads * context.size;
  own.first_head = args.first_head - args.num_heads * context.rank;
  const int32_t before = args.num_heads * context.rank;
  if (args.slopes != nullptr) own.slopes = args.slopes - before;
  if (args.distance_bias != nullptr) own.distance_bias = args.distance_bias - before * kDistances;
  own.sinks = nullptr;
  own.states = states;
  own.part_heads = args.num_heads;
  backend->run(rows.queue, own);
  merge_partials(rows.queue, {.counts = args.counts,
                              .states = states,
                              .out = args.out,
                              .sinks = args.sinks,
                              .ranks = context,
                              .max_rows = args.max_rows,
                              .num_heads = args.num_heads,
                              .value_size = args.kv.value_size(),
                              .dtype = args.kv.dtype});
}

}  // namespace foretoken
