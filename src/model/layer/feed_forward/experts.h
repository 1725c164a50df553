#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"
#include "kernels/comm/expert_exchange.h"
#include "kernels/experts/combine_experts.h"
#include "kernels/experts/expert_gemm.h"
#include "kernels/experts/expert_lists.h"
#include "model/layer/feed_forward/gated_mlp.h"
#include "model/layer/layer_rows.h"
#include "model/layer/layer_spec.h"
#include "model/layer/linear.h"
#include "model/layer/norm.h"
#include "model/layer/part_loader.h"

namespace foretoken {

// A mixture of experts with its weights, or a rank's part of it: a part of the inner columns of
// every expert, or some experts whole (Sharding::experts). Either way each rank has its columns of
// what is shared, and the router of all experts, so that ranks choose alike. Where engines have the
// experts together, rows go to all of them behind the router and come back as sums.
struct Experts {
  ExpertsSpec spec;           // of the part
  ShardRange own = {0, 0};    // the experts of this rank
  int32_t own_zeros = 0;      // and those behind them without weights whose rows it adds
  bool is_exchanged = false;  // rows go to several engines' experts
  DType dtype = DType::kF32;
  Linear router;                         // [count, hidden]
  const float* correction = nullptr;     // [count] or null
  Norm router_norm;                      // of what the router reads; without weights: it has none
  const float* weight_scales = nullptr;  // [count] or null
  const int32_t* table = nullptr;        // as of RouteExpertsArgs, or null
  PackedWeight gate_up;                  // [own.count * 2 * inner, hidden] as kGateUp
  PackedWeight down;                     // [own.count * hidden, inner]
  const float* gate_up_bias = nullptr;   // [own.count * inner gates, as many ups] or null
  // [own.count * hidden] or null; where experts are cut, of the first rank alone.
  const float* down_bias = nullptr;
  const float* sum_bias = nullptr;  // [hidden], added to the sum on the first rank; or null
  GatedMlp shared;                  // where spec.shared_inner > 0
  Linear shared_gate;               // [1, hidden]; without outputs: there is none
  // [latent, hidden] and [hidden, latent], where the spec has latents; what the others have of
  // hidden is then latent.
  Linear to_latent;
  Linear of_latent;
  // Of the sum over all ranks, of which each then makes its columns wide: of_latent is [hidden,
  // latent_columns.count]. Without weights: there is none.
  Norm latent_norm;
  ShardRange latent_columns = {0, 0};
  bool sums_latents = false;  // there are several ranks
  float eps = 0;              // of latent_norm

  // Buffers that layers share, wide enough for the widest of them.
  struct Scratch {
    float* logits = nullptr;   // [max_rows, count]
    int32_t* ids = nullptr;    // [max_rows, top_k]
    float* weights = nullptr;  // [max_rows, top_k]
    int32_t* begins = nullptr;
    int32_t* entries = nullptr;
    void* gated = nullptr;          // [max_rows * top_k, inner] act
    void* products = nullptr;       // [max_rows * top_k, hidden] act
    void* rounded = nullptr;        // what either product's x is rounded into; null: none is
    float* shared_out = nullptr;    // [max_rows, hidden]; or what Experts::sum_kept leaves
    float* shared_logit = nullptr;  // [max_rows]
    float* latent = nullptr;        // [max_rows, latent], where a layer has one, and so is the next
    void* latent_act = nullptr;     // [max_rows, latent] act
    void* latent_own = nullptr;     // the same, of one rank's columns where it is normed
    // With several engines, "all" being room for the rows of all of them: entries, gated, products
    // and rounded are for all rows.
    const void* comm = nullptr;   // as of ExpertRanks
    const void* ranks = nullptr;  // Sharding::comm
    ExchangedRows exchanged{};
    int32_t capacity_rows = 0;  // of an engine
    float* sums = nullptr;      // [all rows, hidden] of this rank's experts
    float* returns = nullptr;   // [2 * max_rows, hidden]
    GatedMlp::Scratch shared;

    // Makes room for a layer; before `take`.
    void fit(const ExpertsSpec& part);
    Status take(const ScratchSource& source);

   private:
    Status take_exchange(const ScratchSource& source);
    Status take_rounded(const ScratchSource& source);

    int32_t num_engines_ = 1;
    int32_t count_ = 0;
    int32_t top_k_ = 0;
    int32_t inputs_ = 0;
    int32_t width_ = 0;
    int32_t latent_ = 0;
    bool norms_latent_ = false;
    int32_t inner_ = 0;
    bool has_shared_ = false;
    bool keeps_apart_ = false;
  };

  // Loads what begins with `base`, for example "model.layers.3.", and the base of the spec. Stays
  // until the loader has finished or stopped. Errors as of WeightLoader; Unsupported where experts
  // cannot be divided or packed.
  Status load(PartLoader& loader, const std::string& base, const ExpertsSpec& whole);

  // Calls f for each matrix that adapters may change; those of experts are not among them.
  template <class F>
  void for_each_linear(const F&) {}

  // Enqueues the routing of x [max_rows, hidden] act;
  void route(const LayerRows& rows, const void* x, const Scratch& scratch) const;
  // then what experts make of x, which may be normed otherwise, before `down`; is_routed_x: it is
  // what was routed, and nobody wrote it since;
  void expand_routed(const LayerRows& rows, const void* x, const Scratch& scratch,
                     bool is_routed_x = false) const;
  // both;
  void expand(const LayerRows& rows, const void* x, const Scratch& scratch) const {
    route(rows, x, scratch);
    expand_routed(rows, x, scratch, true);
  }
  // then what is added to the residual;
  void output(const LayerRows& rows, const Scratch& scratch, Sum to) const;
  // or, where this rank alone makes the sum and there are no latents, that added to the residual
  // [max_rows, hidden] and its norm of root mean squares, to `normed` [max_rows, hidden] act.
  void output_normed(const LayerRows& rows, const Scratch& scratch, float* residual,
                     const Norm& norm, float norm_eps, void* normed) const;

 private:
  ExpertLists lists(const Scratch& scratch) const;
  void keep_rows(const LayerRows& rows, const void* x, const Scratch& scratch) const;
  void sum_kept(const LayerRows& rows, const Scratch& scratch) const;
  bool joins_experts() const;
  const void* make_latents(const LayerRows& rows, const void* x, const Scratch& scratch) const;
  const void* norm_latents(const LayerRows& rows, const Scratch& scratch) const;
  void widen_latents(const LayerRows& rows, const Scratch& scratch, Sum to) const;
  // Whether the shared expert is as wide as the others.
  bool adds_shared() const { return spec.shared_inner > 0 && spec.latent == 0; }
  // Whether rows that experts leave as they are stay here while others go to several engines.
  bool keeps_apart() const { return is_exchanged && own_zeros > 0; }
  // Without a gate the logit is 0 at all times, which makes it half.
  bool weighs_shared() const { return shared_gate.outputs > 0 || spec.halves_shared; }
  SharedExpert with_experts(const void* x, const Linear& linear, void* y) const;
  const void* rounded_x(const LayerRows& all, const void* x, const Scratch& scratch) const;
  const void* rounded_gated(const LayerRows& all, const Scratch& scratch) const;
  LayerRows rows_of_experts(const LayerRows& rows, const Scratch& scratch) const;
  void exchange(const LayerRows& rows, const void* x, const Scratch& scratch) const;
  void multiply_down(const LayerRows& rows, const Scratch& scratch) const;
  CombineExpertsArgs combination(const LayerRows& rows, const Scratch& scratch, Sum to) const;
  void combine(const LayerRows& rows, const Scratch& scratch, Sum to) const;
  void combine_exchanged(const LayerRows& rows, const Scratch& scratch, Sum to) const;
};

// Numbers that are loaded beyond those of its tensors: the ups of experts, and of what all rows
// share, which are their gates, too; less those of experts that other ranks have.
double loaded_beyond(const ExpertsSpec& part, int32_t hidden, const Sharding& sharding);

}  // namespace foretoken
