#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"
#include "dialled/dialled_fill.h"
#include "dialled/dialled_writer.h"
#include "model/draft_head.h"

namespace foretoken {

// A draft head for a dialled target: after a share of ids it proposes what the target emits, after
// the others what it emits after one another, or nothing that it can propose. (A dialled draft
// model is a checkpoint of the same seed with less agreement.)
struct DialledHead {
  HeadKind kind = HeadKind::kEagle;
  double agreement = 0.8;
  int32_t num_modules = 1;  // of MTP
  int32_t num_layers = 1;   // of EAGLE, EAGLE-3 and P-EAGLE, one behind the other
  // EAGLE-3: rows of its own output matrix; 0: so many that half of the disagreement comes from
  // ids that are left out.
  int32_t draft_vocab_size = 0;
};

// Whether a dialled head may have several modules, or several layers one behind the other.
bool has_modules(HeadKind kind);
bool has_layers(HeadKind kind);

// Writes config.json and model.safetensors of the head into `folder`, which is created: the layout
// of EAGLE (fc, layers, an output matrix of its own), of EAGLE-3 (taps of the first, the middle
// and the last layer, reduced output matrix, d2t and t2d), of P-EAGLE (the same with a state of
// masks), of DeepSeek's MTP modules or of DFlash, DSpark or Domino. Its layer sees the context as the
// target's do, and the token itself counts most. All drafts of a DFlash block are what follows the
// token before it, and those of P-EAGLE but the first what follows a mask, so that only the first
// can be right. InvalidArgument names the size that does not work, or the file that cannot be
// written.
Status write_dialled_head(const std::string& folder, const DialledShape& target,
                          const DialledHead& head);

// The MTP modules that DialledShape::num_mtp_modules adds to a target's own files.
void add_dialled_modules(const DialledShape& shape, const ModelConfig& config,
                         const DecoderTraits& traits, DialledTensors* out);

}  // namespace foretoken
