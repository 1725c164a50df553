#include "engine/request/parameters/sampling_checks.h"

#include <algorithm>
#include <string>

#include "compat/compat.h"
#include "config/sampling_ranges.h"
#include "kernels/step_types.h"
#include "text/grammar.h"

namespace foretoken {
namespace {

Status not_in_vocabulary(const char* name, int32_t id, const RequestLimits& limits) {
  return invalid_argument(std::string(name) + ": token id " + std::to_string(id) +
                          " is not in the vocabulary of " + std::to_string(limits.vocab_size));
}

Status check_named_ids(const char* name, const std::vector<int32_t>& ids,
                       const RequestLimits& limits) {
  for (const int32_t id : ids) {
    if (id < 0 || id >= limits.vocab_size) return not_in_vocabulary(name, id, limits);
  }
  return {};
}

Status check_bias(const SamplingParams& sampling, const RequestLimits& limits) {
  const auto& bias = sampling.logit_bias;
  if (bias.size() > kMaxLogitBias) {
    return invalid_argument("logit_bias has " + std::to_string(bias.size()) + " entries; at most " +
                            std::to_string(kMaxLogitBias) +
                            " are possible, allowed_token_ids takes any number");
  }
  std::vector<int32_t> ids;
  for (const auto& [id, value] : bias) {
    if (id < 0 || id >= limits.vocab_size) return not_in_vocabulary("logit_bias", id, limits);
    ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  const auto twice = std::adjacent_find(ids.begin(), ids.end());
  if (twice == ids.end()) return {};
  return invalid_argument("logit_bias names token id " + std::to_string(*twice) +
                          " twice; keep one entry");
}

Status check_lists(const SamplingParams& sampling, const RequestLimits& limits) {
  FT_RETURN_IF_ERROR(check_named_ids("stop_token_ids", sampling.stop_token_ids, limits));
  FT_RETURN_IF_ERROR(check_bias(sampling, limits));
  if (!sampling.allowed_token_ids) return {};
  return check_named_ids("allowed_token_ids", *sampling.allowed_token_ids, limits);
}

Status check_logprobs(const char* name, std::optional<int> wanted, const RequestLimits& limits) {
  if (!wanted) return {};
  const std::string value = std::string(name) + " is " + std::to_string(*wanted);
  if (num_alternatives(*wanted, limits) <= limits.max_logprobs) return {};
  return invalid_argument(
      value +
      (*wanted == -1 ? " (the whole vocabulary of " + std::to_string(limits.vocab_size) + ")"
                     : "") +
      ", but this engine allows at most " + std::to_string(limits.max_logprobs) +
      (limits.max_logprobs < kMaxLogprobs
           ? "; ask for fewer or start it with a greater --max-logprobs"
           : "; ask for fewer"));
}

Status check_processors(const SamplingParams& sampling) {
  for (const auto& processor : sampling.logits_processors) {
    if (processor == nullptr) return invalid_argument("logits_processors holds a null pointer");
  }
  return {};
}

Status check_grammar(const SamplingParams& sampling) {
  if (!sampling.structured_outputs) return {};
  const Result<GrammarText> text = grammar_text(*sampling.structured_outputs);
  return text.ok() ? Status() : text.status();
}

// The first field that holds words; empty: none does.
const char* field_with_words(const SamplingParams& sampling) {
  if (!sampling.stop.empty()) return "stop strings";
  return sampling.bad_words.empty() ? "" : "bad_words";
}

// "logprobs is 5"; empty: none are asked for.
std::string logprobs_wish(const SamplingParams& sampling) {
  if (sampling.logprobs) return "logprobs is " + std::to_string(*sampling.logprobs);
  if (!sampling.prompt_logprobs) return {};
  return "prompt_logprobs is " + std::to_string(*sampling.prompt_logprobs);
}

// The first field of the request that is about tokens; empty: none is.
const char* field_about_tokens(const Request& request) {
  const SamplingParams& sampling = request.sampling;
  return sampling.n != 1                               ? "n above 1"
         : sampling.logprobs                           ? "logprobs"
         : sampling.prompt_logprobs                    ? "prompt_logprobs"
         : !sampling.logits_processors.empty()         ? "logits_processors"
         : sampling.structured_outputs                 ? "structured_outputs"
         : !sampling.logit_bias.empty()                ? "logit_bias"
         : !sampling.bad_words.empty()                 ? "bad_words"
         : sampling.allowed_token_ids                  ? "allowed_token_ids"
         : !sampling.stop.empty()                      ? "stop"
         : !sampling.stop_token_ids.empty()            ? "stop_token_ids"
         : sampling.min_tokens > 0                     ? "min_tokens"
         : request.speculative.enabled.value_or(false) ? "speculative.enabled"
                                                       : "";
}

// The request beside its engine.
Status check_combination(const Request& request, const RequestLimits& limits, bool has_tokenizer) {
  const SamplingParams& sampling = request.sampling;
  Combination c = limits.engine;
  c.structured_outputs = sampling.structured_outputs.has_value();
  c.has_tokenizer = has_tokenizer;
  c.texts = field_with_words(sampling);
  c.logits_processors = !sampling.logits_processors.empty();
  c.keeps_processor_rows = limits.max_processor_rows > 0;
  c.prompt_logprobs = sampling.prompt_logprobs.has_value();
  c.logprobs = logprobs_wish(sampling);
  c.gives_logprobs = limits.max_logprobs > 0;
  c.priority = request.priority;
  c.has_priorities = limits.has_priorities;
  c.generates = request.pooling == Pooling::kNone;
  c.pools_tokens = request.pooling == Pooling::kTokens;
  c.has_token_head = limits.tokens != nullptr;
  if (request.pooling != Pooling::kNone) c.beside_pooling = field_about_tokens(request);
  return compat(c);
}

Status check_engine_wishes(const Request& request, const RequestLimits& limits) {
  if (!request.truncate_prompt_tokens) return {};
  const int kept = *request.truncate_prompt_tokens;
  if (kept == -1 || (kept >= 1 && kept <= limits.max_model_len)) return {};
  return out_of_range("truncate_prompt_tokens", kept,
                      "be -1 (as many as fit) or in [1, max_model_len], which is " +
                          std::to_string(limits.max_model_len));
}

}  // namespace

Status check_request(const Request& request, const RequestLimits& limits, bool has_tokenizer) {
  const SamplingParams& sampling = request.sampling;
  FT_RETURN_IF_ERROR(check_times(request));
  FT_RETURN_IF_ERROR(check_sampling_ranges(sampling));
  FT_RETURN_IF_ERROR(check_lists(sampling, limits));
  FT_RETURN_IF_ERROR(check_combination(request, limits, has_tokenizer));
  FT_RETURN_IF_ERROR(check_logprobs("logprobs", sampling.logprobs, limits));
  FT_RETURN_IF_ERROR(check_logprobs("prompt_logprobs", sampling.prompt_logprobs, limits));
  FT_RETURN_IF_ERROR(check_processors(sampling));
  FT_RETURN_IF_ERROR(check_grammar(sampling));
  return check_engine_wishes(request, limits);
}

}  // namespace foretoken
