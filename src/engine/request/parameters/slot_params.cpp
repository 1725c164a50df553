#include "engine/request/parameters/slot_params.h"

#include <algorithm>
#include <bit>
#include <string>

#include "base/philox.h"
#include "engine/request/parameters/sampling_checks.h"
#include "kernels/sampling/logprobs.h"
#include "sched/step_plan.h"

namespace foretoken {
namespace {

Status fill_stop_ids(const SamplingParams& sampling, const RequestLimits& limits,
                     SlotParams& params) {
  std::vector<int32_t> ids = sampling.stop_token_ids;
  // A grammar says itself where EOS may come; nothing comes behind it.
  if (!sampling.ignore_eos || sampling.structured_outputs) {
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
  return sampling.seed ? *sampling.seed : seed_of_request(limits.seed, number);
}

DevicePooling device_pooling(Pooling wanted, const RequestLimits& limits) {
  switch (wanted == Pooling::kAuto ? limits.pooling : wanted) {
    case Pooling::kNone:
      return DevicePooling::kNone;
    case Pooling::kCls:
      return DevicePooling::kFirst;
    case Pooling::kLast:
    case Pooling::kAuto:
      return DevicePooling::kLast;
    case Pooling::kMean:
      return DevicePooling::kMean;
    case Pooling::kMax:
      return DevicePooling::kMax;
    case Pooling::kMeanSqrtLen:
      return DevicePooling::kMeanSqrtLen;
    case Pooling::kWeightedMean:
      return DevicePooling::kWeightedMean;
    case Pooling::kTokens:
      return DevicePooling::kTokens;
  }
  return DevicePooling::kNone;
}

// The device computes as many alternatives as either list wants; each takes its leading ones.
int32_t device_logprobs(const SamplingParams& sampling, const RequestLimits& limits) {
  int32_t most = kNoLogprobs;
  for (const std::optional<int>& wanted : {sampling.logprobs, sampling.prompt_logprobs}) {
    if (wanted) most = std::max(most, num_alternatives(*wanted, limits));
  }
  if (most == kNoLogprobs || !sampling.processed_logprobs) return most;
  return most | kProcessedLogprobs;
}

void append_lists(const SamplingParams& sampling, const SlotIds& ids, int vocab_size,
                  std::vector<uint32_t>& words) {
  for (const auto& [id, bias] : sampling.logit_bias) {
    words.push_back(static_cast<uint32_t>(id));
    words.push_back(std::bit_cast<uint32_t>(bias));
  }
  words.insert(words.end(), ids.bad_words.begin(), ids.bad_words.end());
  if (sampling.allowed_token_ids) {
    const size_t mask = words.size();
    words.resize(mask + static_cast<size_t>(vocab_size + 31) / 32);
    for (const int32_t id : *sampling.allowed_token_ids) {
      words[mask + static_cast<size_t>(id) / 32] |= 1u << (id % 32);
    }
  }
  words.insert(words.end(), ids.prediction.begin(), ids.prediction.end());
  words.insert(words.end(), ids.flex.begin(), ids.flex.end());
}

uint32_t features_of(const Request& request, const SlotParams& params) {
  if (request.pooling != Pooling::kNone) return kPools;
  const SamplingParams& sampling = request.sampling;
  uint32_t features = 0;
  if (shapes_logits(params)) features |= kShapesLogits;
  if (sampling.logprobs) features |= kWantsLogprobs;
  if (!sampling.logits_processors.empty()) features |= kHasProcessors;
  if (sampling.structured_outputs) features |= kHasGrammar;
  if (sampling.prompt_logprobs && params.prompt_len > 1) features |= kScoresPrompt;
  return features;
}

}  // namespace

uint64_t seed_of_request(uint64_t engine_seed, uint64_t number) {
  const Philox4 words = philox4x32(static_cast<uint32_t>(number),
                                   static_cast<uint32_t>(number >> 32), 0, ~0u, engine_seed);
  return static_cast<uint64_t>(words.v[0]) << 32 | words.v[1];
}

Result<SlotWishes> slot_wishes(const Request& request, const SlotLengths& lengths,
                               const SlotIds& ids, const RequestLimits& limits, uint64_t number) {
  const SamplingParams& sampling = request.sampling;
  SlotWishes wishes;
  wishes.params = {.seed = seed_of(sampling, limits, number),
                   .processors = 0,
                   .grammar = 0,
                   .cache_salt = 0,
                   .choice = 0,
                   .temperature = sampling.temperature,
                   .top_p = sampling.top_p,
                   .min_p = sampling.min_p,
                   .top_k = std::max(sampling.top_k, 0),
                   .repetition_penalty = sampling.repetition_penalty,
                   .frequency_penalty = sampling.frequency_penalty,
                   .presence_penalty = sampling.presence_penalty,
                   .prompt_len = lengths.prompt_len,
                   .min_len = static_cast<int32_t>(std::min<int64_t>(
                       lengths.max_len, int64_t{lengths.prompt_len} + sampling.min_tokens)),
                   .max_len = lengths.max_len,
                   .max_draft_tokens = lengths.max_draft_tokens,
                   .drafter = lengths.drafter,
                   .lookups = static_cast<int32_t>(lengths.lookups),
                   .adapter = 0,
                   .adapter_begin = 0,
                   .adapter_number = 0,
                   .num_logprobs = device_logprobs(sampling, limits),
                   .num_logit_bias = static_cast<int32_t>(sampling.logit_bias.size()),
                   .num_bad_word_ints = static_cast<int32_t>(ids.bad_words.size()),
                   .has_allowed_ids = sampling.allowed_token_ids ? 1 : 0,
                   .num_prediction = static_cast<int32_t>(ids.prediction.size()),
                   .num_flex_words = static_cast<int32_t>(ids.flex.size()),
                   .pooling = static_cast<int32_t>(device_pooling(request.pooling, limits)),
                   .num_stop_ids = 0,
                   .stop_ids = {}};
  wishes.features = features_of(request, wishes.params);
  append_lists(sampling, ids, limits.vocab_size, wishes.init_words);
  FT_RETURN_IF_ERROR(fill_stop_ids(sampling, limits, wishes.params));
  return wishes;
}

}  // namespace foretoken
