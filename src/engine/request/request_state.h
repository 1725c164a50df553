#pragma once
#include <foretoken/request.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "engine/grammar/grammar_sequence.h"
#include "engine/request/adapter_registry.h"
#include "engine/request/host_processors.h"
#include "engine/request/logprob_record.h"
#include "kernels/step_types.h"
#include "sched/sequence.h"
#include "text/detokenizer.h"
#include "text/stop_strings.h"
#include "text/tokenizer.h"

namespace foretoken {

class JudgeHead;
class TokenHead;
class RowLayers;

// What the choices of one request share; lives as long as any of their records.
struct RequestGroup {
  Request request;                       // constant once submitted
  const Tokenizer* tokenizer = nullptr;  // null: outputs have no text
  const JudgeHead* judge = nullptr;      // as of RequestLimits
  const TokenHead* tokens = nullptr;     // the same
  const RowLayers* dense = nullptr;      // the same
  // Set from any thread: the engine thread ends every choice soon.
  std::atomic<bool> end_requested{false};

  // Output thread.
  OutputCallback callback;
  int num_open = 1;  // choices whose last output is still to come
  bool callback_threw = false;
};

// Everything the engine keeps about one choice of a request. Made by the submitting thread;
// `sequence`, `params` and `init_words` then belong to the engine thread, the output part to the
// output thread, which destroys the record once the engine thread has released it.
struct RequestState {
  Sequence sequence;
  SlotParams params{};
  // The variable parts of `params`, as SlotInit::word_offset lays them out; sequence.num_init_words
  // is their number.
  std::vector<uint32_t> init_words;
  std::unique_ptr<ProcessorChain> processors;    // SlotParams::processors points to it
  std::shared_ptr<GrammarSequence> grammar;      // SlotParams::grammar is its number; null: none
  std::unique_ptr<LogprobRecord> logprobs;       // null: none are wanted
  std::shared_ptr<const EngineAdapter> adapter;  // null: none
  Status refused;                                // why it ends before it runs; ok: it runs
  // The pooled state: written by the engine thread before it announces the end. Empty: no pooling.
  std::vector<float> embedding;
  std::shared_ptr<RequestGroup> group = std::make_shared<RequestGroup>();
  // Set from any thread: the engine thread ends the sequence soon.
  std::atomic<bool> end_requested{false};
  // Whether it is, or its whole request.
  bool shall_end() const { return end_requested.load() || group->end_requested.load(); }
  RequestState* next_submitted = nullptr;  // link in Intake
  // All on the clock of now_ns(). By when it must have had its first step, and by when it must end.
  int64_t submitted_ns = 0;
  int64_t first_step_ns = 0;  // set by the engine thread before the first output
  int64_t queue_deadline_ns = INT64_MAX;
  int64_t deadline_ns = INT64_MAX;
  // Set by the engine thread before it announces the end: which of the two has passed.
  enum class Late : uint8_t { kNo, kNotStarted, kNotFinished } late = Late::kNo;

  // Output thread.
  std::unique_ptr<Detokenizer> detokenizer;
  std::unique_ptr<StopStrings> stop_strings;
  RequestOutput output;  // reused for every callback
  RequestStats stats;
  bool first_output = true;
  bool prompt_counted = false;  // its tokens are in the sums
  bool finished = false;        // the last output is out; anything later is dropped
};

}  // namespace foretoken
