#pragma once
#include <cstdint>

namespace foretoken {

// Drafters made of a layer or few that read hidden states of the target.
enum class HeadKind : uint8_t {
  kEagle,   // Li et al. 2024: fc over [embedding, state], one layer, the target's output matrix
  kEagle3,  // Li et al. 2025: three taps through fc, attention over [embedding, state], own output
            // matrix over a reduced vocabulary (d2t)
  kMtp,     // DeepSeek-AI 2024: eh_proj over [norm(embedding), norm(state)], one or several modules
  kDflash,  // Chen et al. 2026: a block of masks through a few layers, which also see keys and
            // values of the target's states (model/block_head.h)
  kDspark,  // DeepSeek-AI 2026: the same, where the first row drafts too and logits depend on the
            // draft before
  kPeagle,  // Hui et al. 2026: EAGLE-3 with rows of masks, whose state is learned, so that one pass
            // drafts all tokens
  kDomino,  // Huang et al. 2026: DFlash with logits that depend on all drafts before, by a
            // recurrent state
};

// How a row enters the first layer of a head.
enum class HeadEntry : uint8_t {
  kSummed,  // fc of [embedding, state] is the residual, which the layer reads as it is
  kNormed,  // the same of [norm(embedding), norm(state)], behind the layer's own norm
  kPaired,  // fc makes a state of the taps; attention reads [norm(embedding), norm(state)]
  kBlock,   // the embeddings of a block of tokens; layers keep keys and values of fc of the taps
};

// What holds of a kind of heads: what its files say, what its rows read and how drafts follow from
// them. All that code may ask of a kind; one that is new is a row of kHeadKinds.
struct HeadTraits {
  HeadKind kind;
  const char* method;      // in the speculative config
  const char* speculator;  // speculators_model_type of its files
  HeadEntry entry;
  // Its modules lie in the target's files, have the layers of the target's architecture and are
  // told apart by number (MtpForm). Otherwise its layers are those of Llama or Qwen 3, one behind
  // the other.
  bool of_target = false;
  // Where the first layer may be published beside "layers.0."; null: nowhere.
  const char* first_layer = nullptr;
  // num_hidden_layers of its files is its own, where files of others may repeat the target's.
  bool counts_layers = false;
  // Rows of masks have a learned state in place of the target's, so that one pass drafts all
  // tokens.
  bool learns_masks = false;
  // Of blocks: the row of the last known token drafts, too, where the files do not say.
  bool anchor_drafts = false;
  // Of blocks: logits depend on the draft before, by a Markov matrix.
  bool reads_draft_before = false;
  // Of blocks: logits depend on all drafts before, by a recurrent state.
  bool carries_drafts = false;

  // Whether it drafts a block at once.
  constexpr bool drafts_blocks() const { return entry == HeadEntry::kBlock; }
  // Whether it is laid out as EAGLE-3 is.
  constexpr bool pairs_taps() const { return entry == HeadEntry::kPaired; }
  // Whether fc reads hidden states between layers of the target, which the files name, in place of
  // the embedding and what leaves its final norm. Such heads may have an output matrix over a part
  // of the vocabulary.
  constexpr bool reads_taps() const { return drafts_blocks() || pairs_taps(); }
};

// In the order of HeadKind.
inline constexpr HeadTraits kHeadKinds[] = {
    {.kind = HeadKind::kEagle,
     .method = "eagle",
     .speculator = "eagle",
     .entry = HeadEntry::kSummed},
    {.kind = HeadKind::kEagle3,
     .method = "eagle3",
     .speculator = "eagle3",
     .entry = HeadEntry::kPaired,
     .first_layer = "midlayer."},
    {.kind = HeadKind::kMtp,
     .method = "mtp",
     .speculator = "mtp",
     .entry = HeadEntry::kNormed,
     .of_target = true},
    {.kind = HeadKind::kDflash,
     .method = "dflash",
     .speculator = "dflash",
     .entry = HeadEntry::kBlock},
    {.kind = HeadKind::kDspark,
     .method = "dspark",
     .speculator = "dspark",
     .entry = HeadEntry::kBlock,
     .anchor_drafts = true,
     .reads_draft_before = true},
    {.kind = HeadKind::kPeagle,
     .method = "p_eagle",
     .speculator = "peagle",
     .entry = HeadEntry::kPaired,
     .first_layer = "midlayer.",
     .counts_layers = true,
     .learns_masks = true},
    {.kind = HeadKind::kDomino,
     .method = "domino",
     .speculator = "domino",
     .entry = HeadEntry::kBlock,
     .carries_drafts = true},
};

constexpr const HeadTraits& head_traits(HeadKind kind) {
  return kHeadKinds[static_cast<uint8_t>(kind)];
}

}  // namespace foretoken
