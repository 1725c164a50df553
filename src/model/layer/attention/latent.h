#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/layer/attention/attention_scratch.h"
#include "model/layer/attention/latent_index.h"
#include "model/layer/layer_rows.h"
#include "model/layer/layer_spec.h"
#include "model/layer/linear.h"
#include "model/layer/part_loader.h"

namespace foretoken {

// Latent attention with its weights, or a rank's part of its heads; what is compressed is whole on
// every rank.
struct Latent {
  LatentSpec spec;  // of the part
  DType dtype = DType::kF32;
  float eps = 0;  // of the norms
  Linear first;   // [q_rank or all queries | kv_rank | rope_dim, inputs]
  // [heads * (nope_dim + rope_dim), spec.query_inputs()]; without outputs: there is none
  Linear q_b;
  PackedWeight absorb_k;           // [heads * kv_rank, nope_dim]
  PackedWeight absorb_v;           // [heads * value_dim, kv_rank]
  const float* q_norm = nullptr;   // [q_rank] or null
  const float* kv_norm = nullptr;  // [kv_rank]
  const float* sinks = nullptr;    // [heads] or null
  Linear o;                        // [hidden, heads * value_dim]
  // [spec.num_gates(), inputs], or of rows of query_inputs(); without outputs: there are none
  Linear gates;
  LatentIndex index;  // where spec.index exists

  // Buffers that layers share, wide enough for the widest of them.
  struct Scratch {
    float* first = nullptr;    // [max_rows, first_size]
    void* q_low = nullptr;     // [max_rows, q_rank] act
    void* q_both = nullptr;    // [max_rows, 2 * q_rank] act, where gates come with queries
    float* q_whole = nullptr;  // [max_rows, q size]
    void* nope = nullptr;      // [max_rows, heads * nope_dim] act
    void* q = nullptr;         // [max_rows, heads * entry_dim] act
    void* latents = nullptr;   // [max_rows, heads * kv_rank] act: what attention leaves
    void* attended = nullptr;  // [max_rows, heads * value_dim] act
    float* gates = nullptr;    // [max_rows, num_gates], where a layer has some
    AttentionScratch attention;
    LatentIndex::Scratch index;

    // Makes room for a layer; before `take`.
    void fit(const LatentSpec& part);
    Status take(const ScratchSource& source);

   private:
    LatentSpec widest_;
    int32_t num_gates_ = 0;
  };

  // Loads what begins with `base`, for example "model.layers.3.", and the base of the spec. Stays
  // until the loader has finished or stopped. Errors as of WeightLoader.
  Status load(PartLoader& loader, const std::string& base, const LatentSpec& whole);

  // Calls f for each matrix that adapters may change: none of the indexer.
  template <class F>
  void for_each_linear(const F& f) {
    f(first);
    if (q_b.outputs > 0) f(q_b);
    f(o);
    if (gates.outputs > 0) f(gates);
  }

  // Enqueues the first product of x [max_rows, spec.inputs] act;
  void project(const LayerRows& rows, const void* x, const Scratch& scratch) const;
  // then the rest of the queries, what goes into the cache, and attention;
  void attend(const LayerRows& rows, const LayerKv& kv, const Scratch& scratch) const;
  // then what is added to the residual.
  void output(const LayerRows& rows, const Scratch& scratch, Sum to) const {
    multiply(rows, scratch.attended, o, to, dtype);
  }

 private:
  void make_queries(const LayerRows& rows, const LayerKv& kv, const Scratch& scratch) const;
  void make_whole_queries(const LayerRows& rows, const Scratch& scratch) const;
};

}  // namespace foretoken
