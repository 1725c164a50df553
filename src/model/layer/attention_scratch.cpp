#include "model/layer/attention_scratch.h"

#include <algorithm>

namespace foretoken {

Status AttentionScratch::take(const ScratchSource& source, int32_t num_heads, int32_t head_dim) {
  backend = &source.attention;
  workspace_floats = backend->workspace_floats(source.device, source.max_rows, num_heads, head_dim);
  const char* what = ScratchSource::kWhat;
  FT_ASSIGN_OR_RETURN(workspace,
                      source.arena.take_array<float>(static_cast<size_t>(workspace_floats), what));
  const auto sync_rows = static_cast<size_t>(std::min(source.max_rows, AttentionArgs::kSyncRows));
  FT_ASSIGN_OR_RETURN(
      sync, source.arena.take_array<uint32_t>(sync_rows * static_cast<size_t>(num_heads), what));
  return {};
}

AttentionArgs AttentionScratch::args_of(const LayerRows& rows, const LayerKv& kv) const {
  return {.counts = rows.counts,
          .q = nullptr,
          .out = nullptr,
          .positions = rows.positions,
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
          .repeats = kv.repeats};
}

}  // namespace foretoken
