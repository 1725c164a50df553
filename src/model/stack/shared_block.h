#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "model/layer/layer_rows.h"
#include "model/layer/layer_spec.h"
#include "model/layer/linear.h"
#include "model/layer/norm.h"
#include "model/layer/part_loader.h"
#include "model/layer/stage_cut.h"

namespace foretoken {

// What a layer adds to a product of weights that it has in common with others: of each part of its
// columns a product of low rank.
struct LowRank {
  Linear low;               // [parts * rank, inputs]; without outputs: nothing is added
  std::vector<Linear> ups;  // of each part [columns, rank]

  bool exists() const { return low.outputs > 0; }
  int32_t columns() const;
};

// SharedSpec with its weights but those of attention and of the recurrent mixer, or a rank's part
// of them.
struct SharedBlock {
  Norm wide_norm;  // [2 * hidden]
  LowRank attention;
  Norm mlp_norm;
  Linear gate_up;  // [2 * inner, hidden], gates before ups
  LowRank mlp;
  Linear down;
  Linear out;
  Norm side_norm;
  Activation activation = Activation::kGelu;

  // Buffers that layers share, wide enough for the widest of them. "act" as of ScratchSource.
  struct Scratch {
    float* pair = nullptr;     // [max_rows, 2 * hidden]: the residual, the token's embedding
    void* wide = nullptr;      // [max_rows, 2 * hidden] act
    float* sum = nullptr;      // [max_rows, hidden]
    float* gate_up = nullptr;  // [max_rows, 2 * inner]
    void* gated = nullptr;     // [max_rows, inner] act
    float* low = nullptr;      // [max_rows, parts * rank]
    void* low_act = nullptr;   // [max_rows, rank] act
    float* part = nullptr;     // [max_rows, columns] of the widest product of low rank
    float* added = nullptr;    // the same

    // Makes room for a layer; before `take`.
    void fit(const SharedBlock& block);
    // And for embeddings alone, of a stage whose layers may have no block.
    void fit_embeddings(int32_t hidden) { hidden_ = hidden; }
    bool exists() const { return hidden_ > 0; }
    Status take(const ScratchSource& source);

   private:
    int32_t hidden_ = 0;
    int32_t inner_ = 0;
    int32_t low_ = 0;
    int32_t columns_ = 0;
  };

  bool exists() const { return out.outputs > 0; }
  // `base` is the layer's, for example "model.layers.9."; what it has in common with others is read
  // under shared_base. Stays until the loader has finished or stopped. Errors as of
  // WeightLoader.
  Status load(PartLoader& loader, const std::string& base, const SharedSpec& spec);

  // Enqueues the token's part of `pair`: x [max_rows, hidden], what embeddings leave;
  static void keep_embeddings(const LayerRows& rows, const float* x, int32_t hidden,
                              const Scratch& scratch);
  // or that it goes over the cut between two stages;
  static void cross(const LayerRows& rows, const StageCut& cut, int32_t hidden,
                    const Scratch& scratch);
  // then, of the residual, what attention reads, in scratch.wide;
  void widen(const LayerRows& rows, const float* residual, const NormSize& size,
             const Scratch& scratch, DType dtype) const;
  // and what the layer's own adapters add to queries, keys and values made of that;
  void adapt_attention(const LayerRows& rows, float* qkv, const Scratch& scratch,
                       DType dtype) const;
  // and what the MLP makes of x [max_rows, hidden] act.
  void run_mlp(const LayerRows& rows, const void* x, float* to, const Scratch& scratch,
               DType dtype) const;
};

// Where the files have what a layer has in common with others: `base`, or, where nothing of it is
// there, `base` with the number of the first of them.
std::string shared_base(PartLoader& loader, const std::string& base, const SharedSpec& spec);

}  // namespace foretoken
