#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/layer/attention/attention_scratch.h"
#include "model/layer/layer_rows.h"
#include "model/layer/layer_spec.h"
#include "model/layer/linear.h"
#include "model/layer/part_loader.h"

namespace foretoken {

// The indexer of grouped-query attention with its weights: queries of the rank's KV heads, and keys
// that every rank has.
struct BlockIndex {
  BlockIndexSpec spec;            // of the part
  Linear products;                // [(num_heads + 1) * head_dim, inputs]: queries, then the key
  const float* q_norm = nullptr;  // [head_dim]
  const float* k_norm = nullptr;  // [head_dim]
  float eps = 0;

  // Buffers that layers share. A row of attention is a row and KV head here.
  struct Scratch {
    float* products = nullptr;            // [max_rows, (num_heads + 1) * head_dim]
    void* queries = nullptr;              // [max_rows, num_heads * head_dim] act
    StepCounts* rows_of_heads = nullptr;  // as of ChooseBlocksArgs, and so are the next
    int32_t* pages = nullptr;
    int32_t* begins = nullptr;  // null: attention does not ask
    int32_t* last = nullptr;
    int32_t* rows = nullptr;
    float* workspace = nullptr;
    int32_t page = 1;            // the smallest that there is room for
    AttentionScratch attention;  // of those rows

    // Makes room for a layer whose part has so many query heads of such a size; before `take`.
    void fit(const BlockIndexSpec& spec, int32_t num_heads, int32_t head_dim);
    Status take(const ScratchSource& source);

   private:
    BlockIndexSpec widest_;
    int32_t group_ = 0;  // query heads of a KV head
    int32_t head_dim_ = 0;
  };

  bool exists() const { return spec.exists(); }
  // Loads what begins with `base`, for example "model.layers.3.self_attn.".
  Status load(PartLoader& loader, const std::string& base, const GqaSpec& whole);

  // Enqueues the products of x [max_rows, inputs] act;
  void project(const LayerRows& rows, const void* x, const Scratch& scratch, DType dtype) const;
  // then what the rows keep, and which blocks they attend to; before their keys and values are.
  void choose(const LayerRows& rows, const LayerKv& kv, const Scratch& scratch, DType dtype) const;
  // Lets attention of all heads of the rows see those alone, and enqueues it.
  void attend(const LayerRows& rows, AttentionArgs attention, const Scratch& scratch) const;

 private:
  void keep(const LayerRows& rows, const LayerKv& kv, const Scratch& scratch, DType dtype) const;
};

}  // namespace foretoken
