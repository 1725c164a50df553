#pragma once
#include <cstdint>

#include "kernels/attention/rope_kv.h"
#include "kernels/latent/choose_entries.h"
#include "model/layer/layer_state.h"
#include "model/weights/tensor_part.h"

namespace foretoken {

// The gates that what attention leaves is multiplied with, made of the rows that queries are made
// of.
enum class HeadGates : uint8_t {
  kNone,
  kEachHead,     // [heads, inputs]
  kEachElement,  // [heads * head_dim, inputs]
};

// The indexer of latent attention (DeepSeek-AI 2025, V3.2): queries of its own heads, made of the
// compressed queries, meet a key of each position, and the heads' weights, made of the row, say
// what that counts (kernels/latent/choose_entries.h).
struct IndexSpec {
  int32_t num_heads = 0;
  int32_t head_dim = 0;  // of queries and of the key of a position in the KV cache
  int32_t top = 0;       // positions that a row attends to; 0: there is no indexer
  bool paired = false;   // as of LatentSpec; of the turning part of heads, as wide as its rope_dim
  bool own = true;       // false: rows attend to what the last layer with an indexer has chosen
  bool turns_last = false;  // the turning part ends heads in the checkpoint, instead of beginning
  float norm_eps = 1e-6f;   // of keys
  // Positions that have one key, the mean of theirs by gates that are learned; rows choose `top`
  // such keys and see all of their positions, and those behind the last whole one (GLM 5.3).
  int32_t pool = 1;

  bool exists() const { return top > 0; }
  // Entries that a row may attend to.
  int32_t listed() const { return listed_entries(top, pool, pool > 1); }
};

// Latent attention (DeepSeek-AI 2024, V2): all heads read one compressed key and value of a
// position. Runs absorbed for every row: queries are multiplied into the latents' space.
struct LatentSpec {
  int32_t num_heads = 0;
  int32_t q_rank = 0;  // width that queries are compressed to; 0: they are not (q_proj)
  int32_t kv_rank = 0;
  int32_t nope_dim = 0;   // of a head's queries and keys, without positions
  int32_t rope_dim = 0;   // and with
  int32_t value_dim = 0;  // of a head's values
  int32_t inputs = 0;     // width of the rows that all are made of
  float scale = 1;        // of scores
  bool bias = false;      // of q_a_proj (or q_proj) and kv_a_proj_with_mqa
  bool o_bias = false;
  float kv_scale = 1;      // of what is compressed, once it is normed (LongCat Flash)
  float norm_eps = 1e-6f;  // of what is compressed
  bool paired = true;      // the turning pairs lie side by side in the checkpoint
  bool still = false;      // the checkpoint has no elements that turn, in whose places are zeros
  QueryScale query_scale = {};
  IndexSpec index = {};  // whole on every rank
  const char* base = "self_attn.";
  const char* indexer = "indexer.";
  const char* o = "o_proj";
  const char* sinks = nullptr;      // [num_heads], as of AttentionArgs; null: there are none
  const char* gate_proj = nullptr;  // of `gates`; null: there are none
  HeadGates gates = HeadGates::kEachHead;
  // Whole queries are made of the compressed ones as they are behind their norm and before it, and
  // gates with them, a head's queries before its gates (A.X K2): gate_proj names the tensor of
  // both, [num_heads * (head_dim + value_dim), 2 * q_rank].
  bool gates_with_queries = false;

  int32_t head_dim() const { return nope_dim + rope_dim; }
  // Width of the rows that whole queries are made of, where these are compressed.
  int32_t query_inputs() const { return gates_with_queries ? 2 * q_rank : q_rank; }
  // Gates of a row.
  int32_t num_gates() const {
    if (gate_proj == nullptr) return 0;
    return gates == HeadGates::kEachElement ? num_heads * value_dim : num_heads;
  }
  int32_t q_size() const { return num_heads * head_dim(); }
  int32_t entry_dim() const { return kv_rank + rope_dim; }  // of a position in the KV cache
  // What the first product makes: compressed or whole queries, then what goes to the cache.
  int32_t first_size() const { return (q_rank > 0 ? q_rank : q_size()) + entry_dim(); }
  // Elements of what is compressed, and of all queries, that the checkpoint has;
  int32_t stored_entry() const { return kv_rank + (still ? 0 : rope_dim); }
  int32_t stored_queries() const { return still ? num_heads * nope_dim : q_size(); }
  // and how both are widened from these.
  PaddedHeads padded_queries() const {
    return still ? PaddedHeads{nope_dim, head_dim()} : PaddedHeads{};
  }
  PaddedHeads padded_entry() const {
    return still ? PaddedHeads{kv_rank, entry_dim()} : PaddedHeads{};
  }
  // Keys and gates of positions whose key is not whole yet.
  StateSpec state() const {
    const bool pools = index.exists() && index.own && index.pool > 1;
    return pools ? StateSpec{2 * index.head_dim, index.pool, {}} : StateSpec{};
  }
};

// Attention to a window and to entries compressed of several positions each (DeepSeek V4). All
// heads read one entry of a position, key and value at once, whose last rope_dim elements turn.
// Compressed entries are made as compress_rows.h says, of every `ratio` positions;
// with an indexer, which has compressed keys of its own, rows attend to the best of them. Heads
// leave their values in `groups` groups, each of which is made o_rank wide before `wo_b`. Ranks
// divide the groups and their heads; entries and indexer are whole on each.
struct CompressedSpec {
  int32_t num_heads = 0;
  int32_t head_dim = 0;
  int32_t rope_dim = 0;
  int32_t inputs = 0;
  int32_t q_rank = 0;
  int32_t groups = 1;
  int32_t o_rank = 0;  // of a group
  int32_t window = 0;
  float scale = 1;        // of scores
  int32_t ratio = 0;      // 0: there is the window alone
  bool overlaps = false;  // as of CompressRowsArgs
  IndexSpec index = {};   // exists only where windows overlap
  const char* base = "attn.";

  int32_t q_size() const { return num_heads * head_dim; }
  int32_t first_size() const { return q_rank + head_dim; }  // queries, then a position's entry
  // Values of a position for compressed entries, and for the keys of the indexer.
  int32_t width() const { return overlaps ? 2 * head_dim : head_dim; }
  int32_t index_width() const { return index.exists() ? 2 * index.head_dim : 0; }
  // These and as many gates.
  int32_t compressed_size() const { return ratio > 0 ? 2 * (width() + index_width()) : 0; }
  StateSpec state() const {
    return {.conv_channels = compressed_size(), .conv_width = overlaps ? 2 * ratio : ratio};
  }
};

}  // namespace foretoken
