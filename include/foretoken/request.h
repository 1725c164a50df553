#pragma once
#include <foretoken/limits.h>
#include <foretoken/status.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace foretoken {

// What a logits processor may look at: the tokens before the one to be chosen.
struct LogitsContext {
  std::span<const int32_t> prompt_ids;
  std::span<const int32_t> output_ids;  // drafts that are being verified included
  int choice = 0;                       // index among the choices of the request
};

// Changes the logits of one token before everything else that shapes them. Called on a thread of
// the engine, for several rows at once and again for the same row: `apply` must be a pure function
// of its arguments, or speculation would change the text. -inf forbids a token; +inf and NaN end
// the request with an error, and so does an exception.
class LogitsProcessor {
 public:
  virtual ~LogitsProcessor() = default;
  virtual void apply(const LogitsContext& context, std::span<float> logits) const = 0;
};

// The form that the output must have. Exactly one of the first six says it; names follow vLLM.
struct StructuredOutputs {
  std::string json;                     // a JSON schema
  bool json_object = false;             // any JSON object
  std::string regex;                    // the whole output matches
  std::vector<std::string> choice;      // the output is one of these texts
  std::string grammar;                  // Lark or GBNF
  std::string structural_tag;           // a JSON object: schemas between begin and end texts
  bool disable_any_whitespace = false;  // with json and json_object: none between tokens of JSON
  bool disable_additional_properties = false;  // with json: as if every object said so
  // With json: a regex in place of the usual white space, which is a blank, or a line break with
  // indentation as deep as the schema.
  std::string whitespace_pattern;
  // A schema that says what cannot be enforced is an error; false: the rest of it is enforced.
  bool strict_schemas = true;
  // The form begins behind the first of these texts, and what comes before it is free; empty: at
  // once. Up to 8 blanks or line breaks may stand between where space_after_reasoning says so.
  std::vector<std::string> reasoning_ends;
  bool space_after_reasoning = false;
};

// How tokens are chosen and when they end. Names and defaults follow vLLM.
struct SamplingParams {
  int n = 1;                        // choices, at most 128; each a sequence with its own noise
  int max_tokens = 16;              // most output tokens
  int min_tokens = 0;               // no stop token before so many
  float temperature = 1.0f;         // 0: greedy
  float top_p = 1.0f;               // (0, 1]
  int top_k = 0;                    // 0 or -1: off
  float min_p = 0.0f;               // [0, 1]; share of the likeliest token's probability
  float presence_penalty = 0.0f;    // [-2, 2]
  float frequency_penalty = 0.0f;   // [-2, 2]
  float repetition_penalty = 1.0f;  // above 0; 1: off
  std::optional<uint64_t> seed;     // none: derived from the engine's seed and the request's number
  // Token id and bias in [-100, 100]; at most 1024 different ids.
  std::vector<std::pair<int32_t, float>> logit_bias;
  std::vector<std::string> bad_words;                     // texts that the output never has
  std::optional<std::vector<int32_t>> allowed_token_ids;  // the only ones that can be sampled
  // Applied in order.
  std::vector<std::shared_ptr<const LogitsProcessor>> logits_processors;
  std::optional<StructuredOutputs> structured_outputs;
  std::optional<int> logprobs;         // alternatives a token, 0: the token's own only; -1: all
  std::optional<int> prompt_logprobs;  // the same for the tokens of the prompt, with choice 0
  // Both of the distribution that tokens are drawn from, after all that shapes it, temperature,
  // min_p, top_k and top_p, in place of the model's own; stop tokens count also before min_tokens.
  bool processed_logprobs = false;
  std::vector<std::string> stop;
  std::vector<int32_t> stop_token_ids;
  bool include_stop_str_in_output = false;
  bool ignore_eos = false;
  bool detokenize = true;  // false: outputs have no text
  bool skip_special_tokens = true;
  bool spaces_between_special_tokens = true;
};

// Requests without output: one state of the prompt, after the last layer and its norm. Such a
// request ends with "stop"; sampling parameters that would need tokens are refused, the others
// ignored.
// kAuto: as the model's folder says, else by whether it sees later tokens (the first state) or not
// (the last one). kMax: the largest of all states' numbers in each place. kMeanSqrtLen: their sum
// over the root of how many they are. kWeightedMean: state n counts n times. kTokens: what a model
// with EngineInfo::token_size makes of each token's state, one token behind the other.
enum class Pooling { kNone, kLast, kMean, kCls, kAuto, kMax, kMeanSqrtLen, kWeightedMean, kTokens };

// Where a prompt that is too long is cut. kAuto: what embeds and judges keeps its beginning, what
// is written on keeps its end, as vLLM has it.
enum class TruncationSide { kAuto, kLeft, kRight };

// Speculation of one request. Unset fields take the engine's settings.
struct SpeculativeParams {
  std::optional<bool> enabled;
  std::optional<int> num_speculative_tokens;  // at most the drafter's
  // One of the engine's drafters, or several with '+' between them, look-ups before another one;
  // empty: the first, with those that it leads to.
  std::string method;
};

// How a model marks the reasoning that its output may begin with.
struct ReasoningMarkers {
  std::vector<std::string> opens;   // behind white space, one of these begins it
  std::vector<std::string> closes;  // each of these ends it; none: there is no reasoning
  bool opened = false;              // by the prompt, or the output always begins with it
};

struct Request {
  std::string request_id;  // empty: the engine makes one
  std::string prompt;
  std::vector<int32_t> prompt_token_ids;  // used instead of `prompt` when not empty
  bool add_special_tokens =
      true;  // around `prompt`, such as BOS; false for text of a chat template
  // Keeps only so many of the prompt's tokens; -1: as many as fit beside max_tokens, or beside one
  // token where max_tokens alone fills max_model_len. Marks that a tokenizer puts around `prompt`
  // stay where its end is cut, and in models that read texts from both ends.
  std::optional<int> truncate_prompt_tokens;
  TruncationSide truncation_side = TruncationSide::kAuto;  // the end that is cut
  SamplingParams sampling;
  SpeculativeParams speculative;
  // What the output will probably be, as text or, used instead when not empty, as token ids. An
  // engine's drafter that looks texts up (ngram, suffix) proposes it, and serves a request that has
  // one and names no method. Without such a drafter it has no effect, and the output is the same
  // with any prediction.
  std::string prediction;
  std::vector<int32_t> prediction_token_ids;
  Pooling pooling = Pooling::kNone;
  bool normalize = true;             // the pooled state to length 1
  int priority = 0;                  // lower runs first, with the scheduling policy "priority"
  double queue_timeout_seconds = 0;  // most time before its first step; 0: any
  double timeout_seconds = 0;        // most time from submit to its end; 0: any
  std::string cache_salt;            // prefix-cache entries are shared only within one salt
  // What `request` is in the engine's expressions (EngineConfig::attention_backend, "flex(...)"):
  // which positions a row sees, and what becomes of its scores; empty: all, and nothing.
  std::string flex_mask;
  std::string flex_score;
  std::string adapter;         // name of the engine's adapter that it runs with; empty: none
  ReasoningMarkers reasoning;  // stop strings are looked for behind it
  // Of several data parallel engines the one that it runs on, numbered from 0 in each server; none:
  // the one with the least to do.
  std::optional<int> data_parallel_rank;

  bool has_prediction() const { return !prediction.empty() || !prediction_token_ids.empty(); }
};

enum class FinishReason { kNone, kStop, kLength, kAbort, kError };

// "stop", "length", "abort", "error", or "" while the request runs.
const char* finish_reason_name(FinishReason reason);

// Counts of one choice. A draft is one proposal of one or more tokens in one step. The mean
// acceptance length is 1 + num_accepted_tokens / num_drafts.
struct RequestStats {
  int64_t num_prompt_tokens = 0;
  int64_t num_cached_tokens = 0;  // of those found in the prefix cache when first admitted
  int64_t num_output_tokens = 0;
  int64_t num_steps = 0;   // steps that committed tokens
  int64_t num_drafts = 0;  // of those with at least one drafted token
  int64_t num_draft_tokens = 0;
  int64_t num_accepted_tokens = 0;         // without the corrected or bonus token
  int64_t num_accepted_branch_tokens = 0;  // of those, what the first drafts of a tree had not
  // Of those two, tokens that came from the request's prediction.
  int64_t num_prediction_draft_tokens = 0;
  int64_t num_accepted_prediction_tokens = 0;
  // Of the same two, by the drafter that made them, in the order of EngineConfig::speculative.
  std::array<int64_t, kMaxDrafters> num_draft_tokens_by_drafter{};
  std::array<int64_t, kMaxDrafters> num_accepted_tokens_by_drafter{};
  // By position in the draft: how often it was verified, and how often it was accepted.
  std::array<int64_t, kMaxSpeculativeTokens> num_draft_tokens_per_pos{};
  std::array<int64_t, kMaxSpeculativeTokens> num_accepted_tokens_per_pos{};
  int64_t num_preemptions = 0;
  int64_t queue_ns = 0;  // from submit to the first step that has it; the longest in sums

  RequestStats& operator+=(const RequestStats& other) {
    num_prompt_tokens += other.num_prompt_tokens;
    num_cached_tokens += other.num_cached_tokens;
    num_output_tokens += other.num_output_tokens;
    num_steps += other.num_steps;
    num_drafts += other.num_drafts;
    num_draft_tokens += other.num_draft_tokens;
    num_accepted_tokens += other.num_accepted_tokens;
    num_accepted_branch_tokens += other.num_accepted_branch_tokens;
    num_prediction_draft_tokens += other.num_prediction_draft_tokens;
    num_accepted_prediction_tokens += other.num_accepted_prediction_tokens;
    for (size_t i = 0; i < num_draft_tokens_per_pos.size(); ++i) {
      num_draft_tokens_per_pos[i] += other.num_draft_tokens_per_pos[i];
      num_accepted_tokens_per_pos[i] += other.num_accepted_tokens_per_pos[i];
    }
    for (size_t i = 0; i < num_draft_tokens_by_drafter.size(); ++i) {
      num_draft_tokens_by_drafter[i] += other.num_draft_tokens_by_drafter[i];
      num_accepted_tokens_by_drafter[i] += other.num_accepted_tokens_by_drafter[i];
    }
    num_preemptions += other.num_preemptions;
    queue_ns = std::max(queue_ns, other.queue_ns);
    return *this;
  }
};

// A token with its log-probability under the model, before anything shaped the logits.
struct Logprob {
  int32_t token_id = -1;
  float logprob = 0;
  int rank = 0;  // 1: no token is likelier
  std::string decoded_token;
  // The token's own bytes where its text cannot show them: it is a part of a character. Else empty.
  std::string bytes = {};
};

// One position: the token that stands there, then the likeliest ones, best first. vLLM's dictionary
// is their union.
struct TokenLogprobs {
  Logprob token;
  std::vector<Logprob> top;
};

// What is new about one choice of a request. Text never ends inside a character.
struct RequestOutput {
  std::string request_id;
  int index = 0;                   // of the choice
  std::string text;                // new text since the last output
  std::vector<int32_t> token_ids;  // new tokens since the last output
  // Leading ones of token_ids that a drafter proposed, and bytes of `text` made of them. Nought in
  // the sums that Engine::generate returns.
  int num_accepted_tokens = 0;
  size_t accepted_text_bytes = 0;
  std::vector<TokenLogprobs> logprobs;  // of token_ids, when wanted
  // Of the prompt's tokens from the second on, when wanted; complete in the first output of choice
  // 0, and missing when the request ends before its prompt is computed.
  std::vector<TokenLogprobs> prompt_logprobs;
  std::vector<float> embedding;   // the pooled state, in the last output of a pooling request
  bool finished = false;          // this choice
  bool request_finished = false;  // every choice
  FinishReason finish_reason = FinishReason::kNone;
  std::string stop_reason;  // the stop string or stop token id that ended it
  Status status;            // why, with kError
  RequestStats stats;       // complete when finished
};

// Called by the engine's output thread, in order, one call at a time for all requests of an engine.
// It may call submit, generate_async and abort, but must not wait for an output or destroy the
// engine. When it throws, its request ends with an error.
using OutputCallback = std::function<void(const RequestOutput&)>;

}  // namespace foretoken
