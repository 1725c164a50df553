#pragma once
#include <foretoken/status.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace foretoken {

// How tokens are chosen and when they end. Names and defaults follow vLLM.
struct SamplingParams {
  int max_tokens = 16;           // most output tokens
  int min_tokens = 0;            // no stop token before so many
  float temperature = 1.0f;      // 0: greedy
  float top_p = 1.0f;            // (0, 1]
  int top_k = 0;                 // 0 or -1: off
  std::optional<uint64_t> seed;  // none: derived from the engine's seed and the request's number
  std::vector<std::string> stop;
  std::vector<int32_t> stop_token_ids;
  bool include_stop_str_in_output = false;
  bool ignore_eos = false;
  bool skip_special_tokens = true;
};

// Speculation of one request. Unset fields take the engine's settings.
struct SpeculativeParams {
  std::optional<bool> enabled;
  std::optional<int> num_speculative_tokens;  // at most the engine's
};

struct Request {
  std::string request_id;  // empty: the engine makes one
  std::string prompt;
  std::vector<int32_t> prompt_token_ids;  // used instead of `prompt` when not empty
  bool add_special_tokens =
      true;  // around `prompt`, such as BOS; false for text of a chat template
  SamplingParams sampling;
  SpeculativeParams speculative;
  std::string cache_salt;  // prefix-cache entries are shared only within one salt
};

enum class FinishReason { kNone, kStop, kLength, kAbort, kError };

// "stop", "length", "abort", "error", or "" while the request runs.
const char* finish_reason_name(FinishReason reason);

// Counts of one request. A draft is one proposal of one or more tokens in one step.
struct RequestStats {
  int64_t num_prompt_tokens = 0;
  int64_t num_cached_tokens = 0;  // of those found in the prefix cache when first admitted
  int64_t num_output_tokens = 0;
  int64_t num_steps = 0;   // steps that committed tokens
  int64_t num_drafts = 0;  // of those with at least one drafted token
  int64_t num_draft_tokens = 0;
  int64_t num_accepted_tokens = 0;  // without the corrected or bonus token
  int64_t num_preemptions = 0;
};

// What is new about a request. Text never ends inside a character.
struct RequestOutput {
  std::string request_id;
  std::string text;                // new text since the last output
  std::vector<int32_t> token_ids;  // new tokens since the last output
  bool finished = false;
  FinishReason finish_reason = FinishReason::kNone;
  std::string stop_reason;  // the stop string or stop token id that ended it
  Status status;            // why, with kError
  RequestStats stats;       // complete when finished
};

// Called by the engine's output thread, in order, one call at a time for all requests of an engine.
using OutputCallback = std::function<void(const RequestOutput&)>;

}  // namespace foretoken
