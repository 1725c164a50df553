#pragma once
#include <cstdint>

#include "attention/backend.h"
#include "device/arena.h"
#include "device/device.h"
#include "device/queue.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/kv_layer.h"
#include "kernels/comm/context_exchange.h"
#include "kernels/rows/move_rows.h"
#include "kernels/step_types.h"
#include "model/layer/layer_state.h"
#include "model/layer/lora.h"

namespace foretoken {

struct RankRows;

// A rope table in device memory; without frequencies nothing turns.
struct DeviceRope {
  const float* inv_freq = nullptr;
  int32_t rotary_dim = 0;
  float scaling = 1;
};

// The rows of a forward pass; in device memory.
struct LayerRows {
  Queue& queue;
  const StepCounts* counts;
  const int32_t* positions;  // [max_rows]
  const int32_t* row_slot;   // [max_rows]
  int32_t max_rows;
  RunLengths runs = RunLengths::kUnknown;
  const LoraPass* lora = nullptr;  // null: no row has an adapter that changes what follows
  bool beside = false;             // ops of another lane may run at the same time (Queue::fork)
  // What products round their x into, room for the widest (rounded_rows_bytes); null: none does.
  void* rounded = nullptr;
  const int32_t* token_ids = nullptr;  // [max_rows], where a target's layers run
  const RankRows* ranks = nullptr;     // where parts of layers have a rank's columns; null: all
};

// Rows of `width` elements, converted on their way.
struct RowCast {
  const void* in;
  DType in_dtype;
  void* out;  // not `in`
  DType out_dtype;
  int32_t width;
  int32_t in_stride = 0;  // 0: width
};

// Enqueues it for all live rows.
inline void cast_rows(const LayerRows& rows, const RowCast& cast) {
  move_rows(rows.queue, {.counts = rows.counts,
                         .in = cast.in,
                         .out = cast.out,
                         .from = nullptr,
                         .to = nullptr,
                         .row_kind = RowKind::kToken,
                         .max_rows = rows.max_rows,
                         .width = cast.width,
                         .out_stride = cast.width,
                         .out_offset = 0,
                         .in_dtype = cast.in_dtype,
                         .out_dtype = cast.out_dtype,
                         .in_stride = cast.in_stride});
}

// Where a layer keeps the keys and values of the rows or its state, and what it sees of them.
struct LayerKv {
  KvLayer kv;
  const int32_t* kv_slot;       // [max_rows]
  const int32_t* block_tables;  // [slots, max_blocks]
  int32_t max_blocks;
  DeviceRope rope;
  int32_t window = 0;          // as of AttentionArgs
  int32_t kv_begin = 0;        // as of AttentionArgs
  int32_t position_shift = 0;  // as of RopeKvArgs
  bool repeats = false;        // as of AttentionArgs
  // [max_rows] the positions that rows attend from, as those of a block from its end; null: theirs.
  const int32_t* attends_from = nullptr;
  const int32_t* last_seen = nullptr;  // as of AttentionArgs
  LayerState state = {};               // of layers that keep one
  void* index_keys = nullptr;          // as of IndexRowsArgs, of layers with an indexer
  // Of layers with compressed entries: these, and where the positions' own blocks are, whichever
  // group holds the window.
  void* compressed = nullptr;
  const int32_t* full_slot = nullptr;    // [max_rows]
  const int32_t* full_tables = nullptr;  // [slots, max_blocks]
};

// What the buffers of a layer's parts are taken from and for. "act" stands for `dtype` in their
// comments.
struct ScratchSource {
  Device& device;
  const AttentionBackend& attention;
  Arena& arena;
  DType dtype;
  int32_t max_rows;
  ContextRanks context = {};           // of Sharding
  const void* experts_comm = nullptr;  // of Sharding::experts
  const void* ranks_comm = nullptr;    // of Sharding
  bool rounds = false;                 // products may round their x
  int32_t kv_block_size = 1;           // positions of a KV block, or a number that divides it

  static constexpr const char* kWhat = "the model's scratch (lower --max-num-batched-tokens)";
  Result<float*> floats(int64_t columns) const {
    return arena.take_array<float>(static_cast<size_t>(max_rows) * static_cast<size_t>(columns),
                                   kWhat);
  }
  Result<void*> act(int64_t columns) const {
    return arena.take(
        static_cast<size_t>(max_rows) * static_cast<size_t>(columns) * dtype_size(dtype), kWhat);
  }
};

}  // namespace foretoken
