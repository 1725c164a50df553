#pragma once
#include <limits>

namespace foretoken {

// What a drafter is, as its row of draft/registry.cpp says; nothing else asks for its name. The
// last two are of one drafter that was made.
struct DrafterTraits {
  bool reads_files = false;  // weights and what lies beside them: model, revision, vocabulary
  bool needs_model = false;  // `model` names them; otherwise the target's folder may hold them
  // They are MTP modules, parts of the target's own files as a rule.
  bool drafts_by_modules = false;
  bool counts_itself = false;    // num_speculative_tokens may be left to its files
  bool maps_vocabulary = false;  // its ids may be others than the target's
  bool looks_up = false;  // it drafts from texts: the sequence's own and SlotLists::prediction
  // It makes drafts without the masks of grammars; they are repaired behind it.
  bool proposes_unmasked = false;
  bool drafts_at_once = false;  // its drafts are rows of one pass of a model
  bool drafts_apart = false;    // and none of them depends on the one before it
  bool has_kv = false;          // entries to catch up; otherwise max_catch_up_rows is 0
  bool keeps_written = false;   // entries of accepted drafts stay exact
  // It has none of its own and attends to the target's keys and values.
  bool reads_target_kv = false;
  // It keeps a state of each sequence beside its entries, so that it begins at the first token of
  // each. Known of one that was made.
  bool keeps_states = false;
  // Its drafts are chosen one after the other, from logits, so that others for a position may begin
  // branches.
  bool branches = false;
  bool learns = false;    // it is called for every step, as it keeps what texts said
  bool one_pass = false;  // the time of a proposal hardly depends on the number of drafts
  // Proposing any drafts writes entries of so many positions behind the known ids, where the
  // sequence may get as long; 0: proposing n writes n - 1.
  int entries_ahead = 0;
  int max_draft_tokens = 0;  // of one sequence and step
  // Positions that it can compute; a sequence beyond gets no drafts.
  int max_len = std::numeric_limits<int>::max();
};

}  // namespace foretoken
