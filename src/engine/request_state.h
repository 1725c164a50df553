#pragma once
#include <foretoken/request.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "kernels/step_types.h"
#include "sched/sequence.h"
#include "text/detokenizer.h"
#include "text/stop_strings.h"

namespace foretoken {

// Everything the engine keeps about one request. Made by the submitting thread; `sequence`,
// `params` and `init_words` then belong to the engine thread, the output part to the output thread,
// which destroys the record once the engine thread has released it.
struct RequestState {
  Sequence sequence;
  SlotParams params{};
  // The variable parts of `params`, as SlotInit::word_offset lays them out; sequence.num_init_words
  // is their number.
  std::vector<uint32_t> init_words;
  // Set from any thread: the engine thread ends the sequence soon.
  std::atomic<bool> end_requested{false};
  RequestState* next_submitted = nullptr;  // link in Intake

  // Output thread.
  Request request;
  OutputCallback callback;
  std::unique_ptr<Detokenizer> detokenizer;
  std::unique_ptr<StopStrings> stop_strings;
  RequestOutput output;  // reused for every callback
  RequestStats stats;
  bool finished = false;  // the last output is out; anything later is dropped
};

}  // namespace foretoken
