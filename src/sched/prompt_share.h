#pragma once
#include <cstdint>

namespace foretoken {

// What wants rows when a step is planned.
struct PromptDemand {
  int decoding_rows = 0;     // bound on those of sequences that decode, drafts included
  int64_t pending_rows = 0;  // of prompts that run, or wait and find a slot
  int prefix_len = 0;        // computed of a prompt before, of the one where that is most
};

// How many rows of prompts a step of at most `max_rows` has beside others, so that tokens do not
// wait for several whole prompts: on a device that computes `unit` rows at about its full rate,
// these end no sooner together than one after the other. A step has `unit` rows, those that decode
// included, or twice as many where prompts of more than three units are pending, whose rate of rows
// is a little higher. Units are smaller where rows look back far, which then cost several times as
// much. At least 1, if the step has as many.
//
// Example: the unit is 512 and 16 sequences decode. A prompt of 1,024 tokens is computed in steps
// of 496, 496 and 32 of its rows; of two such prompts the first step has 1,008.
int prompt_share(const PromptDemand& demand, int unit, int max_rows);

}  // namespace foretoken
