#include "engine/request_builder.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "base/philox.h"

namespace foretoken {
namespace {

constexpr size_t kPromptContext = 16;  // ids that the detokenizer sees before the output

Status check_sampling(const SamplingParams& sampling, const RequestLimits& limits) {
  if (!(sampling.temperature >= 0.0f) || !std::isfinite(sampling.temperature)) {
    return invalid_argument("temperature must be a number from 0 up");
  }
  if (!(sampling.top_p > 0.0f && sampling.top_p <= 1.0f)) {
    return invalid_argument("top_p must lie in (0, 1], got " + std::to_string(sampling.top_p));
  }
  if (sampling.top_k < -1) {
    return invalid_argument("top_k must be -1 or 0 (off) or at least 1, got " +
                            std::to_string(sampling.top_k));
  }
  if (sampling.max_tokens < 1) {
    return invalid_argument("max_tokens must be at least 1, got " +
                            std::to_string(sampling.max_tokens));
  }
  if (sampling.min_tokens < 0 || sampling.min_tokens > sampling.max_tokens) {
    return invalid_argument("min_tokens must lie in [0, max_tokens], got " +
                            std::to_string(sampling.min_tokens));
  }
  for (const int32_t id : sampling.stop_token_ids) {
    if (id < 0 || id >= limits.vocab_size) {
      return invalid_argument("stop_token_ids: " + std::to_string(id) +
                              " is not in the vocabulary of " + std::to_string(limits.vocab_size));
    }
  }
  return {};
}

Status check_prompt(const std::vector<int32_t>& ids, const RequestLimits& limits) {
  if (ids.empty()) return invalid_argument("the prompt is empty; give at least one token");
  if (static_cast<int>(ids.size()) >= limits.max_model_len) {
    return invalid_argument("the prompt has " + std::to_string(ids.size()) +
                            " tokens, but max_model_len is " +
                            std::to_string(limits.max_model_len) +
                            " for prompt and output together; shorten the prompt or raise "
                            "--max-model-len");
  }
  for (const int32_t id : ids) {
    if (id < 0 || id >= limits.vocab_size) {
      return invalid_argument("prompt token id " + std::to_string(id) +
                              " is not in the vocabulary of " + std::to_string(limits.vocab_size));
    }
  }
  return {};
}

Result<std::vector<int32_t>> prompt_ids(const Request& request, const Tokenizer* tokenizer) {
  if (!request.prompt_token_ids.empty()) return request.prompt_token_ids;
  if (request.prompt.empty()) {
    return invalid_argument("the prompt is empty; give at least one token");
  }
  if (tokenizer == nullptr) {
    return invalid_argument("the model has no tokenizer.json; give the prompt as token ids");
  }
  return tokenizer->encode(request.prompt, request.add_special_tokens);
}

Result<int> draft_bound(const SpeculativeParams& speculative, const RequestLimits& limits) {
  if (speculative.enabled.has_value() && !*speculative.enabled) return 0;
  const int wanted = speculative.num_speculative_tokens.value_or(limits.num_speculative_tokens);
  if (speculative.enabled.value_or(false) && limits.num_speculative_tokens == 0) {
    return invalid_argument(
        "speculative.enabled is true, but the engine runs without a drafter; "
        "start it with --speculative-config");
  }
  if (wanted < 0 || wanted > limits.num_speculative_tokens) {
    return invalid_argument("speculative.num_speculative_tokens is " + std::to_string(wanted) +
                            "; this engine allows 0 to " +
                            std::to_string(limits.num_speculative_tokens));
  }
  return wanted;
}

Status fill_stop_ids(SlotParams& params, const SamplingParams& sampling,
                     const RequestLimits& limits) {
  std::vector<int32_t> ids = sampling.stop_token_ids;
  if (!sampling.ignore_eos) {
    ids.insert(ids.end(), limits.eos_token_ids.begin(), limits.eos_token_ids.end());
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  if (ids.size() > kMaxStopIds) {
    return invalid_argument("stop_token_ids and EOS ids are " + std::to_string(ids.size()) +
                            " together; at most " + std::to_string(kMaxStopIds) + " are possible");
  }
  params.num_stop_ids = static_cast<int32_t>(ids.size());
  std::copy(ids.begin(), ids.end(), params.stop_ids);
  return {};
}

uint64_t seed_of(const SamplingParams& sampling, const RequestLimits& limits, uint64_t number) {
  if (sampling.seed) return *sampling.seed;
  const Philox4 words = philox4x32(static_cast<uint32_t>(number),
                                   static_cast<uint32_t>(number >> 32), 0, ~0u, limits.seed);
  return static_cast<uint64_t>(words.v[0]) << 32 | words.v[1];
}

Status add_text_parts(RequestState& state, const Tokenizer* tokenizer) {
  const SamplingParams& sampling = state.request.sampling;
  if (tokenizer == nullptr) {
    if (sampling.stop.empty()) return {};
    return invalid_argument("stop strings need a tokenizer; the model has no tokenizer.json");
  }
  const std::span<const int32_t> prompt(state.sequence.tokens);
  state.detokenizer = std::make_unique<Detokenizer>(
      *tokenizer, Detokenizer::Options{.skip_special_tokens = sampling.skip_special_tokens},
      prompt.last(std::min(prompt.size(), kPromptContext)));
  if (sampling.stop.empty()) return {};
  FT_ASSIGN_OR_RETURN(StopStrings stops,
                      StopStrings::create(sampling.stop, sampling.include_stop_str_in_output));
  state.stop_strings = std::make_unique<StopStrings>(std::move(stops));
  return {};
}

}  // namespace

Result<std::unique_ptr<RequestState>> build_request(Request request, OutputCallback callback,
                                                    const RequestLimits& limits,
                                                    const Tokenizer* tokenizer, uint64_t number,
                                                    int max_blocks) {
  const SamplingParams& sampling = request.sampling;
  FT_RETURN_IF_ERROR(check_sampling(sampling, limits));
  FT_ASSIGN_OR_RETURN(std::vector<int32_t> ids, prompt_ids(request, tokenizer));
  FT_RETURN_IF_ERROR(check_prompt(ids, limits));
  auto state = std::make_unique<RequestState>();
  Sequence& sequence = state->sequence;
  sequence.id = number;
  sequence.prompt_len = static_cast<int>(ids.size());
  sequence.max_len = static_cast<int>(
      std::min<int64_t>(limits.max_model_len, int64_t{sequence.prompt_len} + sampling.max_tokens));
  FT_ASSIGN_OR_RETURN(sequence.max_drafts, draft_bound(request.speculative, limits));
  sequence.cache_salt =
      request.cache_salt.empty() ? 0 : std::hash<std::string>()(request.cache_salt) | 1;
  sequence.tokens.reserve(static_cast<size_t>(sequence.max_len));
  sequence.tokens.assign(ids.begin(), ids.end());
  sequence.blocks.reserve(static_cast<size_t>(max_blocks));
  sequence.window_blocks.reserve(static_cast<size_t>(limits.max_window_blocks));
  sequence.owner = state.get();
  state->params = {.seed = seed_of(sampling, limits, number),
                   .processors = 0,
                   .choice = 0,
                   .temperature = sampling.temperature,
                   .top_p = sampling.top_p,
                   .min_p = sampling.min_p,
                   .top_k = std::max(sampling.top_k, 0),
                   .repetition_penalty = sampling.repetition_penalty,
                   .frequency_penalty = sampling.frequency_penalty,
                   .presence_penalty = sampling.presence_penalty,
                   .prompt_len = sequence.prompt_len,
                   .min_len = static_cast<int>(std::min<int64_t>(
                       sequence.max_len, int64_t{sequence.prompt_len} + sampling.min_tokens)),
                   .max_len = sequence.max_len,
                   .max_drafts = sequence.max_drafts,
                   .num_logprobs = kNoLogprobs,
                   .num_logit_bias = 0,
                   .num_bad_word_ints = 0,
                   .has_allowed_ids = 0,
                   .pooling = 0,
                   .num_stop_ids = 0,
                   .stop_ids = {}};
  FT_RETURN_IF_ERROR(fill_stop_ids(state->params, sampling, limits));
  state->request = std::move(request);
  if (state->request.request_id.empty()) {
    state->request.request_id = "req-" + std::to_string(number);
  }
  state->callback = std::move(callback);
  state->output.request_id = state->request.request_id;
  state->stats.num_prompt_tokens = sequence.prompt_len;
  FT_RETURN_IF_ERROR(add_text_parts(*state, tokenizer));
  return state;
}

}  // namespace foretoken
