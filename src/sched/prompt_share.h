#pragma once
#include <cstdint>

namespace foretoken {

// What wants rows when a step is planned.
struct PromptDemand {
  int num_decoding = 0;      // sequences that decode,
  int decoding_rows = 0;     // bound on their rows, drafts included
  int64_t pending_rows = 0;  // of prompts that run, or wait and find a slot
  int64_t queued_rows = 0;   // those without what long prompts have more than others
  int prefix_len = 0;        // computed of a prompt before, of the one where that is most
};

// How many rows of prompts a step of at most `max_rows` has beside others, so that tokens do not
// wait for several whole prompts: on a device that computes `unit` rows at about its full rate,
// these end no sooner together than one after the other. A step has `unit` rows, those that decode
// included, or twice as many where prompts of more than three units are pending, whose rate of rows
// is a little higher. Who verifies drafts gets several tokens a step, and those drafts are proposed
// step by step: where first tokens wait long in proportion to tokens, a step has up to six units.
// Units are smaller where rows look back far, which then cost several times as much. At least 1, if
// the step has as many.
//
// Example: the unit is 512 and 16 sequences decode. A prompt of 1,024 tokens is computed in steps
// of 496, 496 and 32 of its rows; of two such prompts the first step has 1,008. Where each of the
// 16 verifies three drafts and 9 such prompts wait, it has 2,048 - 64.
int prompt_share(const PromptDemand& demand, int unit, int max_rows);

}  // namespace foretoken
