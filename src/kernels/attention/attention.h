#pragma once
#include "base/host_device.h"
#include "device/attention_families.h"
#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/attention/attention_splits.h"
#include "kernels/attention/rope_kv.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// What is known about the runs of a step: rows of one sequence at consecutive positions, side by
// side. It chooses kernels and never changes a value.
enum class RunLengths : int32_t {
  kUnknown,
  kShort,  // at most kShortRun rows each: every sequence decodes
  kLong,   // there may be longer ones: prompts
  kFar,    // the same, behind kFarBehind positions or more that they see, or more than twice as
           // many rows
};
inline constexpr int kShortRun = 32;
inline constexpr int kFarBehind = 1024;

struct FlexProgram;

// Rows of which each is one KV head of a row of tokens and has a table of pages of its own, as
// choose_blocks leaves them (kernels/latent/choose_blocks.h): their positions count what the pages
// hold, and no row sees a later one. KvLayer then has one KV head, but scales of all.
struct RowsOfHeads {
  int32_t num_kv_heads = 0;            // row r is KV head r % num_kv_heads; 0: rows are of tokens
  const int32_t* positions = nullptr;  // [max_rows / num_kv_heads] of the rows of tokens
  // As block_tables: the position with which each page begins. With flex, and so is `positions`.
  const int32_t* begins = nullptr;
};

inline constexpr int kBiasReach = 128;
inline constexpr int kDistances = 2 * kBiasReach + 1;

// Paged attention with a length of its own for each row: row r sees KV positions
// [max(min(kv_begin, p), p + 1 - window), p], p = positions[r], through block_tables[row_slot[r]],
// and with a chunk none before p - p % chunk (Llama 4). With last_seen it sees those behind it,
// too, up to last_seen[r], of a window as many as of those before it. Query head h reads KV head h
// / (num_heads / num_kv_heads). Softmax in float, of
//   score = scale * (q . k), or with a softcap  softcap * tanh(scale * (q . k) / softcap).
// With slopes (ALiBi, Press et al. 2021) slopes[h] times the distance to the key's position is
// taken from it; with distance_bias the number of that distance is added to it (Raffel et al.
// 2020); with sinks (gpt-oss) exp(sinks[h]) is added to the sum that divides, as if by a position
// without value. Entries of the block table that hold no visible position are not read. Causality
// comes from the position alone; it is never inferred from the number of rows. counts, positions,
// row_slot, last_seen and block_tables are read before the op ahead in the queue has ended: an op
// that writes them must lie before the last rope_kv, or be a copy. The workspace may be written as
// early: between two attentions that share it lies a rope_kv. Where kv holds the entries of one of
// several ranks (KvLayer::context_size), a row sees those of its positions alone, and the op leaves
// `states` for merge_partials (kernels/comm/context_exchange.h), whose bits depend on the row
// alone, too.
struct AttentionArgs {
  static constexpr Op kOp = Op::kAttention;
  static constexpr int kSyncRows = 1024;
  const StepCounts* counts;
  const void* q;                // [max_rows, num_heads * head_dim] of kv.dtype
  void* out;                    // [max_rows, num_heads * kv.value_size()] of the same type
  const int32_t* positions;     // [max_rows]
  const int32_t* row_slot;      // [max_rows]
  const int32_t* block_tables;  // [slots, max_blocks]
  float* workspace;             // workspace_floats floats for partial results; may be unused
  int64_t workspace_floats;
  // [min(max_rows, kSyncRows), num_heads], or null. Zero before the first op that is given it and
  // after each; for one op at a time.
  uint32_t* sync = nullptr;
  KvLayer kv;
  int32_t max_blocks;
  int32_t max_rows;
  int32_t num_heads;
  int32_t window;        // 0: unlimited
  float scale;           // usually 1 / sqrt(head_dim)
  float softcap = 0;     // 0: off
  int32_t kv_begin = 0;  // first KV position that exists
  RunLengths runs = RunLengths::kUnknown;
  // The attention ahead in the queue differs in q, out, sinks and the layer of kv alone, and
  // nothing else has changed: what it found out about the rows, and left in the workspace, still
  // holds. That is read before the op ahead has ended, too: a rope_kv lies between the two.
  bool repeats = false;
  // Whose kernels may be taken. All but those of libraries give equal bits.
  AttentionFamily family = AttentionFamily::kFlash;
  int32_t chunk = 0;              // 0: unlimited
  const float* slopes = nullptr;  // [num_heads] or null
  // [num_heads, kDistances] or null: of keys -kBiasReach, ..., kBiasReach positions behind the row;
  // keys that are farther have the first or the last number.
  const float* distance_bias = nullptr;
  // [max_rows] or null: the last KV position that each row sees, from its own on. Without a chunk.
  const int32_t* last_seen = nullptr;
  const float* sinks = nullptr;  // [num_heads] or null
  // Instead of `out`; then there are no sinks. Part i is of heads
  // [i * part_heads, (i + 1) * part_heads).
  float* states = nullptr;  // [num_heads / part_heads, max_rows, part_heads, attention_state_size]
  int32_t part_heads = 0;
  int32_t first_head = 0;  // number of the first of num_heads in the model
  // Of kFlex, or null: what becomes of the scores as they are said above, and which of the
  // positions weigh nothing (kernels/flex/flex_program.h). A row that sees none becomes
  // zero. Where it sees prompts, rows of a run that begins at position 0 see that run to its end.
  // Without latents. It outlives the op.
  const FlexProgram* flex = nullptr;
  RowsOfHeads of_heads = {};
};

// The KV head whose scales a row's codes have.
FT_HD inline int32_t head_of_scales(const AttentionArgs& a, int64_t row, int32_t kv_head) {
  const int32_t heads = a.of_heads.num_kv_heads;
  return heads > 0 ? static_cast<int32_t>(row % heads) : kv_head;
}

// Floats that attention leaves of a row and head before it divides: value_size sums of weighted
// values, the highest score, which weights are relative to, and the sum of weights, 0 where nothing
// was seen.
constexpr int32_t attention_state_size(int32_t value_size) { return value_size + 2; }

FT_HD inline float* attention_state(const AttentionArgs& a, int64_t row, int32_t head) {
  const int64_t index = (head / a.part_heads * int64_t{a.max_rows} + row) * a.part_heads;
  return a.states + (index + head % a.part_heads) * attention_state_size(a.kv.value_size());
}

// First KV position that a row at `position` sees.
FT_HD inline int first_seen(const AttentionArgs& a, int position) {
  int first = a.kv_begin < position ? a.kv_begin : position;
  if (a.window > 0 && first < position + 1 - a.window) first = position + 1 - a.window;
  if (a.chunk > 0 && first < position - position % a.chunk) first = position - position % a.chunk;
  return first;
}

// Last KV position that row `row` at `position` sees.
FT_HD inline int last_seen(const AttentionArgs& a, int64_t row, int position) {
  if (a.last_seen == nullptr) return position;
  const int last = a.last_seen[row];
  return a.window > 0 && position + a.window - 1 < last ? position + a.window - 1 : last;
}

// Of a key so many positions behind a row, in distance_bias.
FT_HD inline int bias_index(int distance) {
  const int cut = distance < kBiasReach ? distance : kBiasReach;
  return (cut < -kBiasReach ? -kBiasReach : cut) + kBiasReach;
}

void attention(Queue& queue, const AttentionArgs& args);

}  // namespace foretoken
