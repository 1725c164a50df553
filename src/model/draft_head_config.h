#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/config/architecture.h"
#include "model/config/config.h"
#include "model/head_kind.h"

namespace foretoken {

// What config.json of a head says. Layouts: SafeAILab EAGLE, SpecForge, speculators (nested
// transformer_layer_config, `layers.0.` instead of `midlayer.`), for MTP DeepSeek's model.layers.N
// or what the architecture has instead.
struct DraftHeadConfig {
  HeadKind kind = HeadKind::kEagle;
  ModelConfig layer;                // sizes and rope of one layer
  int32_t num_modules = 1;          // MTP: num_nextn_predict_layers; DFlash: its layers
  int32_t num_layers = 1;           // of a module: of EAGLE heads, one behind the other
  MtpForm mtp;                      // MTP
  int32_t first_layer = 0;          // MTP: number of the first module in tensor names
  std::vector<int32_t> tap_layers;  // as of TapSink
  int32_t draft_vocab_size = 0;     // rows of its own output matrix; 0: the target's is used
  int32_t proposed_drafts = 0;  // what speculators' files propose of an EAGLE-3 head; 0: nothing
  bool norm_before_residual = false;
  // EAGLE-3.1 (vllm-project/vllm#42764). The taps are normed before fc: each for itself (fc_norm),
  // or all as one row (norm_before_fc); and the state that the next draft pairs with is the normed
  // one.
  bool fc_norm = false;
  bool norm_before_fc = false;
  bool norm_output = false;
  int32_t mask_id = 0;  // of the rows that draft, of heads that draft several tokens at once
  // Of heads that draft a block at once.
  int32_t block_size = 0;       // rows that it was trained with
  float embedding_scale = 1;    // of what the block reads
  bool anchor_drafts = false;   // the first row, of the last known token, drafts, too
  std::vector<bool> is_causal;  // by layer: its rows do not see those behind them
  // Of DSpark: the width of what the draft before is turned into, 0 where logits do not depend on
  // it; and whether drafts have a confidence, which may read that too.
  int32_t markov_rank = 0;
  bool has_confidence = false;
  bool confidence_reads_markov = true;
  // Of Domino: the size of the recurrent state of the drafts before, the rank of what it adds to
  // logits, and how many of the first drafts nothing is added to. 0: logits depend on no draft.
  int32_t gru_size = 0;
  int32_t gru_rank = 0;
  int32_t plain_drafts = 0;

  const HeadTraits& traits() const { return head_traits(kind); }
  // Elements of what its rows hand on to later passes and, of MTP modules, pair with.
  int32_t state_size() const { return layer.hidden_size * layer.hyper.count; }
  // Columns of the matrix that makes logits of the drafts before; 0: there is none.
  int32_t added_rank() const { return markov_rank + gru_rank; }

  // Whether it is an EAGLE-3 head that pairs with what leaves the target's final norm, as EAGLE's
  // do, and has no fc (use_aux_hidden_state false in NVIDIA's).
  bool reads_final_state() const;
};

// Reads <folder>/config.json. InvalidArgument names a size that does not match the target
// (hidden_size, vocab_size) or a missing field; NotFound a missing file.
Result<DraftHeadConfig> read_draft_head_config(const std::string& folder, HeadKind kind,
                                               const ModelConfig& target,
                                               const ConfigOptions& options);

}  // namespace foretoken
