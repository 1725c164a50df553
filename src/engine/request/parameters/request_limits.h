#pragma once
#include <foretoken/request.h>

#include <cstdint>
#include <string>
#include <vector>

#include "compat/compat.h"

namespace foretoken {

class AdapterRegistry;
class JudgeHead;
class TokenHead;
class RowLayers;

// One of the engine's drafters, as requests name it.
struct DrafterLimits {
  std::string name;
  int num_speculative_tokens = 0;
  DrafterTraits traits = {};  // its looks_up: it drafts from a request's prediction
  bool leads = false;         // it stands before the next one in the engine's list
};

// What an engine can do for a request; requests are checked against it.
struct RequestLimits {
  Combination engine = {};              // what goes with it is compat's to say
  AdapterRegistry* adapters = nullptr;  // null: requests cannot name any
  int max_model_len = 0;
  int max_blocks = 0;  // of the longest sequence
  int vocab_size = 0;
  int added_ids = 0;                    // the last of these, which prompts of adapters alone have
  int max_window_blocks = 0;            // of the longest sequence; 0: no windowed layers
  std::vector<DrafterLimits> drafters;  // the first serves requests that name none
  int max_prediction = 0;               // ids of a prediction that are kept
  int max_logprobs = 0;                 // alternatives a token; 0: no logprobs at all
  int max_processor_rows = 0;           // 0: no logits processors
  int hidden_size = 0;                  // floats of a pooled state
  Pooling pooling = Pooling::kLast;     // of kAuto
  const JudgeHead* judge = nullptr;     // judges pooled states; null: they are told themselves
  const RowLayers* dense = nullptr;     // that pooled states go through; null: none
  const TokenHead* tokens = nullptr;    // that states of tokens go through; null: none
  bool has_priorities = false;          // the scheduling policy "priority"
  uint64_t seed = 0;
  std::vector<int32_t> eos_token_ids;
};

}  // namespace foretoken
