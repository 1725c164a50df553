#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/layer/attention/attention_scratch.h"
#include "model/layer/attention/block_index.h"
#include "model/layer/attention/disentangled.h"
#include "model/layer/attention/head_difference.h"
#include "model/layer/attention/key_mask.h"
#include "model/layer/attention/kv_scales.h"
#include "model/layer/layer_rows.h"
#include "model/layer/layer_spec.h"
#include "model/layer/linear.h"
#include "model/layer/norm.h"
#include "model/layer/part_loader.h"
#include "model/layer/rank_rows.h"

namespace foretoken {

// Grouped-query attention with its weights, or a rank's part of it.
struct Gqa {
  GqaSpec spec;  // of the part
  DType dtype = DType::kF32;
  float eps = 0;  // of the norms of q and k
  Linear qkv;     // [q, k and v heads, spec.inputs]
  // Weights of the norms of q and k; null where there are none or they need none.
  const float* q_norm = nullptr;
  const float* k_norm = nullptr;
  // The rank's heads of q, k and what enters o, for norms over all heads.
  NormedPart q_part;
  NormedPart k_part;
  NormedPart attended_part;
  const float* sinks = nullptr;  // [q heads] or null
  KvScales kv_scales;            // of the layer whose keys and values it reads
  Norm sub_norm;                 // of what enters o; without weights: there is none
  HeadDifference difference;     // before it, where spec.differs()
  KeyMask mask;                  // where spec.dynamic_mask
  BlockIndex index;              // where spec.index exists
  Disentangled disentangled;     // where spec.distances exists
  Linear gates;                  // [spec.num_gates(), spec.inputs]; no outputs: there are none
  // Number of the rank's first query head among all, and its slope in those of all, or null.
  int32_t first_head = 0;
  const float* slopes = nullptr;
  const float* distance_bias = nullptr;  // the same, as of AttentionArgs
  Linear o;                              // [hidden, spec.o_size()]

  // Buffers that layers share, wide enough for the widest of them.
  struct Scratch {
    float* qkv = nullptr;      // [max_rows, qkv size]
    void* q = nullptr;         // [max_rows, q size] act
    void* attended = nullptr;  // [max_rows, q size] act
    float* gates = nullptr;    // [max_rows, gates], where a layer has some
    AttentionScratch attention;
    BlockIndex::Scratch index;

    // Makes room for a layer; before `take`.
    void fit(const GqaSpec& part);
    Status take(const ScratchSource& source);

   private:
    int32_t qkv_size_ = 0;
    int32_t q_size_ = 0;
    int32_t num_gates_ = 0;
    int32_t num_heads_ = 0;
    int32_t head_dim_ = 0;
  };

  // Loads what begins with `base`, for example "model.layers.3.", and the base of the spec. Stays
  // until the loader has finished or stopped. Errors as of WeightLoader.
  Status load(PartLoader& loader, const std::string& base, const GqaSpec& whole);

  // Calls f for each matrix that adapters may change: none of the indexer, nor those that a table
  // of distances was multiplied with.
  template <class F>
  void for_each_linear(const F& f) {
    if (!spec.distances.exists()) f(qkv);
    if (has_gates()) f(gates);
    f(o);
  }

  // Reads keys and values with the scales of the layer that has them.
  void take_scales(const Gqa& owner) { kv_scales = owner.kv_scales; }

  // Positions that a row sees, its own included; 0: all.
  int32_t kept_window() const { return spec.window; }
  bool turns_rows() const { return spec.rope; }
  bool has_gates() const { return gates.outputs > 0; }
  // Whether queries, keys and values, by one product, are all that `project` makes.
  bool makes_qkv_alone() const { return !has_gates() && !index.exists(); }
  // Enqueues queries, keys and values, and gates, of x [max_rows, spec.inputs] act;
  void project(const LayerRows& rows, const void* x, const Scratch& scratch) const;
  // then keys and values into the cache, which is all of rows that nothing attends for;
  void keep(const LayerRows& rows, const LayerKv& kv, const Scratch& scratch) const;
  // or the same, and attention;
  void attend(const LayerRows& rows, const LayerKv& kv, const Scratch& scratch) const;
  // then what is added to the residual.
  void output(const LayerRows& rows, const Scratch& scratch, Sum to) const {
    multiply(rows, scratch.attended, o, to, dtype);
  }

 private:
  // As its group keeps the layer's entries.
  KvLayer own_kv(const LayerKv& kv) const;
  void place_parts(const GqaSpec& whole, const Sharding& sharding);
  void norm_all_heads(const LayerRows& rows, const Scratch& scratch) const;
  void norm_heads(const LayerRows& rows, const Scratch& scratch, float scaling) const;
  void norm_values(const LayerRows& rows, const Scratch& scratch) const;
  void norm_attended(const LayerRows& rows, const Scratch& scratch) const;
  void gate_attended(const LayerRows& rows, const Scratch& scratch) const;
};

// Numbers that are loaded beyond those of its tensors: zeros behind heads of values that are
// smaller than those of keys, and beside the queries of pairs of heads what takes their
// differences.
double loaded_beyond(const GqaSpec& part, int32_t hidden, const Sharding& sharding);

}  // namespace foretoken
