#pragma once
#include <foretoken/request.h>

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "engine/request/parameters/request_limits.h"
#include "kernels/step_types.h"

namespace foretoken {

// What a checked request asks of its slot, for all of its choices.
struct SlotWishes {
  // Without `processors`, `grammar`, `cache_salt` and `adapter_number`; `choice` is 0.
  SlotParams params{};
  std::vector<uint32_t> init_words;  // the variable parts, as SlotInit::word_offset lays them out
  uint32_t features = 0;             // StepFeature bits; choices above 0 have no kScoresPrompt
};

struct SlotLengths {
  int prompt_len = 0;
  int max_len = 0;
  int max_draft_tokens = 0;
  int drafter = 0;
  uint32_t lookups = 0;  // SlotParams::lookups
};

// Ids that a request's texts were turned into.
struct SlotIds {
  std::vector<int32_t> bad_words;   // of bad_word_ids
  std::vector<int32_t> prediction;  // that its drafter looks up
  std::vector<uint32_t> flex = {};  // no ids: what attention asks it (pack_flex)
};

// InvalidArgument when the stop ids are too many. `number` tells unseeded requests apart.
Result<SlotWishes> slot_wishes(const Request& request, const SlotLengths& lengths,
                               const SlotIds& ids, const RequestLimits& limits, uint64_t number);

// The seed of the `number`th request of an engine, where it has none of its own.
uint64_t seed_of_request(uint64_t engine_seed, uint64_t number);

}  // namespace foretoken
