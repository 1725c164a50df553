#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/layer/layer_rows.h"
#include "model/layer/layer_spec.h"
#include "model/layer/linear.h"
#include "model/layer/part_loader.h"
#include "model/layer/stage_cut.h"

namespace foretoken {

// The indexer of latent attention with its weights, whole on every rank; without matrices where the
// layer attends to what another one has chosen.
struct LatentIndex {
  IndexSpec spec;
  int32_t rope_dim = 0;
  Linear key;                          // [head_dim, inputs]
  Linear weights;                      // [num_heads, inputs]
  Linear queries;                      // [num_heads * head_dim, q_rank]
  const float* norm_weight = nullptr;  // [head_dim]
  const float* norm_bias = nullptr;    // [head_dim]
  Linear gates;                        // [head_dim, inputs], where spec.pool > 1
  const float* gate_bias = nullptr;    // [pool, head_dim]

  // Buffers that layers share. What one has chosen stays for those behind it that have no indexer.
  struct Scratch {
    float* key = nullptr;        // [max_rows, head_dim]
    float* gates = nullptr;      // the same, where several positions have one key; and
    float* inputs = nullptr;     // [max_rows, 2 * head_dim] both
    float* weights = nullptr;    // [max_rows, num_heads]
    float* queries = nullptr;    // [max_rows, num_heads * head_dim]
    void* turned = nullptr;      // the same, act
    int32_t* entries = nullptr;  // as of ChooseEntriesArgs, and so are the next
    int32_t* last = nullptr;
    int32_t* rows = nullptr;
    float* workspace = nullptr;
    float* carried = nullptr;  // [max_rows, 4] what travels beside entries: `last` and `rows`

    void fit(const IndexSpec& spec);
    Status take(const ScratchSource& source);
    // Enqueues that what the rows have chosen goes over the cut between two stages, whose `top` is
    // the same.
    void cross(const LayerRows& rows, const StageCut& cut) const;

   private:
    IndexSpec widest_;
  };

  // Loads what begins with `base`, for example "model.layers.3.self_attn.indexer.".
  Status load(PartLoader& loader, const std::string& base, const LatentSpec& whole);

  // Enqueues the products of x [max_rows, inputs] act;
  void project(const LayerRows& rows, const void* x, const Scratch& scratch, DType dtype) const;
  // then, with q_low [max_rows, q_rank] act, what the rows keep, and which entries they attend to.
  void choose(const LayerRows& rows, const LayerKv& kv, const void* q_low, const Scratch& scratch,
              DType dtype) const;
  // Lets attention see those alone, as the sequence of its row.
  void restrict_to_chosen(const Scratch& scratch, AttentionArgs* attention) const;

 private:
  Status load_pool(PartLoader& loader, const std::string& base, const LatentSpec& whole);
  void keep_keys(const LayerRows& rows, const LayerKv& kv, const Scratch& scratch,
                 DType dtype) const;
  void norm_inputs(const LayerRows& rows, const Scratch& scratch) const;
  void keep_pooled_keys(const LayerRows& rows, const LayerKv& kv, const Scratch& scratch,
                        DType dtype) const;
};

}  // namespace foretoken
