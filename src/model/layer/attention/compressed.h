#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"
#include "kernels/latent/attend_compressed.h"
#include "model/layer/attention/latent_index.h"
#include "model/layer/layer_rows.h"
#include "model/layer/layer_spec.h"
#include "model/layer/linear.h"
#include "model/layer/part_loader.h"

namespace foretoken {

// What makes compressed entries of the rows of a layer, or the keys of its indexer.
struct Compressor {
  const float* bias = nullptr;  // as of CompressRowsArgs, and so is the next
  const float* norm = nullptr;
  int32_t head_dim = 0;
};

// Where they go.
struct CompressedTo {
  void* entries = nullptr;
  KvFormat format = KvFormat::kPlain;
  bool dealt = false;  // to the ranks that share positions
};

// Attention to a window and to compressed entries with its weights.
struct Compressed {
  CompressedSpec spec;
  DType dtype = DType::kF32;
  float eps = 0;                   // of the norms
  Linear first;                    // [q_rank | head_dim, inputs]
  Linear q_b;                      // [heads * head_dim, q_rank]
  const float* q_norm = nullptr;   // [q_rank]
  const float* kv_norm = nullptr;  // [head_dim]
  const float* sinks = nullptr;    // [heads]
  PackedWeight o_a;                // [groups * o_rank, heads / groups * head_dim]
  Linear o_b;                      // [hidden, groups * o_rank]
  // Of a layer with compressed entries: values, then gates, then those of the indexer's keys.
  Linear inputs;  // [compressed_size, inputs]
  Compressor entries;
  Compressor keys;
  Linear index_weights;  // [index heads, inputs]
  Linear index_queries;  // [index heads * head_dim, q_rank]

  // Buffers that layers share, wide enough for the widest of them.
  struct Scratch {
    float* first = nullptr;       // [max_rows, first_size]
    void* q_low = nullptr;        // [max_rows, q_rank] act
    float* q_whole = nullptr;     // [max_rows, q size]
    void* q = nullptr;            // the same, act
    void* attended = nullptr;     // the same
    void* grouped = nullptr;      // [max_rows, groups * o_rank] act
    float* compressed = nullptr;  // [max_rows, compressed_size]
    LatentIndex::Scratch index;
    // As of AttentionScratch.
    ContextRanks context;
    void* queries = nullptr;
    float* states = nullptr;

    // Makes room for a layer; before `take`.
    void fit(const CompressedSpec& part);
    Status take(const ScratchSource& source);

   private:
    CompressedSpec widest_;
    int32_t compressed_size_ = 0;
  };

  // Loads what begins with `layer`, for example "layers.3.", and the base of the spec. Stays until
  // the loader has finished or stopped. Errors as of WeightLoader.
  Status load(PartLoader& loader, const std::string& layer, const CompressedSpec& whole);

  // Calls f for each matrix that adapters may change.
  template <class F>
  void for_each_linear(const F& f) {
    f(first);
    f(q_b);
    f(o_b);
  }

  // Enqueues the first products of x [max_rows, spec.inputs] act;
  void project(const LayerRows& rows, const void* x, const Scratch& scratch) const;
  // then the rest of the queries, what goes into the caches and into the layer's state, and
  // attention; compressed entries are of positions from 0 on, without kv.position_shift;
  void attend(const LayerRows& rows, const LayerKv& kv, const Scratch& scratch) const;
  // then what is added to the streams.
  void output(const LayerRows& rows, const Scratch& scratch, Sum to) const {
    multiply(rows, scratch.grouped, o_b, to, dtype);
  }

 private:
  Status load_compressors(PartLoader& loader, const std::string& base, const CompressedSpec& whole);
  void make_queries(const LayerRows& rows, const LayerKv& kv, const Scratch& scratch) const;
  void compress(const LayerRows& rows, const LayerKv& kv, const Scratch& scratch,
                const Compressor& compressor, int32_t first_column, const CompressedTo& to) const;
  void choose(const LayerRows& rows, const LayerKv& kv, const Scratch& scratch) const;
  AttendCompressedArgs args_of(const LayerRows& rows, const LayerKv& kv,
                               const Scratch& scratch) const;
  void merge_ranks(const LayerRows& rows, const LayerKv& kv, const Scratch& scratch,
                   AttendCompressedArgs args) const;
};

}  // namespace foretoken
