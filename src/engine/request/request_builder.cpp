#include "engine/request/request_builder.h"

#include <foretoken/prompt_length.h>

#include <algorithm>
#include <functional>
#include <string>

#include "base/clock.h"
#include "compat/compat.h"
#include "draft/parts/draft_list.h"
#include "draft/registry.h"
#include "engine/request/parameters/bad_words.h"
#include "engine/request/parameters/sampling_checks.h"
#include "engine/request/parameters/slot_params.h"
#include "kernels/flex/flex_program.h"
#include "kernels/sampling/logprobs.h"
#include "sched/step_plan.h"

namespace foretoken {
namespace {

constexpr size_t kPromptContext = 16;  // ids that the detokenizer sees before the output

// Most prompt tokens: beside them there must be room for one output token, if there is output.
int max_prompt_len(const Request& request, const RequestLimits& limits) {
  return limits.max_model_len - (request.pooling == Pooling::kNone ? 1 : 0);
}

Status check_ids(const std::vector<int32_t>& ids, const char* what, const RequestLimits& limits) {
  for (const int32_t id : ids) {
    if (id >= 0 && id < limits.vocab_size) continue;
    return invalid_argument(std::string(what) + " token id " + std::to_string(id) +
                            " is not in the vocabulary of " + std::to_string(limits.vocab_size));
  }
  return {};
}

Status check_prompt(const std::vector<int32_t>& ids, const Request& request,
                    const RequestLimits& limits) {
  if (ids.empty()) return invalid_argument("the prompt is empty; give at least one token");
  if (ids.size() > static_cast<size_t>(max_prompt_len(request, limits))) {
    return prompt_too_long(ids.size(), limits.max_model_len);
  }
  return check_ids(ids, "prompt", limits);
}

// How many of the tokens are marks that a tokenizer put before and behind the text: `around` are
// all that it puts around none.
struct TextMarks {
  size_t before = 0;
  size_t behind = 0;
};

TextMarks marks_of(const std::vector<int32_t>& ids, const std::vector<int32_t>& around) {
  TextMarks marks;
  const size_t most = std::min(ids.size(), around.size());
  while (marks.before < most && ids[marks.before] == around[marks.before]) ++marks.before;
  while (marks.before + marks.behind < most &&
         ids[ids.size() - 1 - marks.behind] == around[around.size() - 1 - marks.behind]) {
    ++marks.behind;
  }
  return marks;
}

// Keeps `kept` tokens. Marks stay, which may be what is pooled, unless the beginning of a text is
// cut to write on behind its end.
void cut(const Request& request, size_t kept, bool from_both_ends, TextMarks marks,
         std::vector<int32_t>& ids) {
  const bool pools = request.pooling != Pooling::kNone;
  const bool cuts_end = request.truncation_side == TruncationSide::kRight ||
                        (request.truncation_side == TruncationSide::kAuto && pools);
  // Of ids and of pairs nothing is known but that texts between marks have one at either end.
  if (from_both_ends && marks.before + marks.behind == 0) marks = {1, 1};
  if (!pools && !cuts_end) marks = {};
  const size_t before = std::min(marks.before, kept);
  const size_t behind = std::min(marks.behind, kept - before);
  const size_t end = cuts_end ? behind : kept - before;
  const auto first = static_cast<int64_t>(kept - end), last = static_cast<int64_t>(end);
  ids.erase(ids.begin() + first, ids.end() - last);
}

void truncate(const Request& request, const RequestLimits& limits, const TextMarks& marks,
              std::vector<int32_t>& ids) {
  if (!request.truncate_prompt_tokens) return;
  int kept = *request.truncate_prompt_tokens;
  if (kept == -1) {
    const int most = max_prompt_len(request, limits);
    const int beside = limits.max_model_len - std::min(request.sampling.max_tokens, most + 1);
    kept = request.pooling != Pooling::kNone || beside < 1 ? most : beside;
  }
  if (ids.size() <= static_cast<size_t>(kept)) return;
  cut(request, static_cast<size_t>(kept), static_cast<bool>(limits.engine.bidirectional), marks,
      ids);
}

Result<std::vector<int32_t>> prompt_ids(const Request& request, const RequestLimits& limits,
                                        const Tokenizer* tokenizer) {
  std::vector<int32_t> ids = request.prompt_token_ids;
  TextMarks marks;
  if (ids.empty()) {
    if (request.prompt.empty()) {
      return invalid_argument("the prompt is empty; give at least one token");
    }
    FT_RETURN_IF_ERROR(compat({.texts = "text prompts", .has_tokenizer = tokenizer != nullptr}));
    const auto encode = [&](const std::string& text, std::vector<int32_t>* to) -> Status {
      FT_ASSIGN_OR_RETURN(*to, tokenizer->encode(text, request.add_special_tokens));
      return {};
    };
    FT_RETURN_IF_ERROR(request.truncate_prompt_tokens
                           ? encode(request.prompt, &ids)
                           : encode_prompt(request.prompt, limits.max_model_len, encode, &ids));
    if (request.truncate_prompt_tokens && request.add_special_tokens) {
      std::vector<int32_t> around;
      FT_RETURN_IF_ERROR(encode("", &around));
      marks = marks_of(ids, around);
    }
  }
  truncate(request, limits, marks, ids);
  FT_RETURN_IF_ERROR(check_prompt(ids, request, limits));
  return ids;
}

// Which drafter serves a request, the look-ups before it, and with how many drafts at most.
struct DraftChoice {
  int drafter = 0;
  uint32_t lookups = 0;
  int max_draft_tokens = 0;
};

Result<int> find_drafter_of(const std::string& method, const std::vector<DrafterLimits>& drafters) {
  const Result<const DrafterEntry*> entry = find_drafter(method);
  std::string names;
  for (size_t i = 0; i < drafters.size(); ++i) {
    const std::string& name = drafters[i].name;
    if (name == method || (entry.ok() && name == entry.value()->name)) return static_cast<int>(i);
    names += (i == 0 ? "" : ", ") + name;
  }
  return invalid_argument("speculative.method '" + method +
                          "' is not a drafter of this engine; use one of: " + names);
}

// The drafters of the engine that a request names, in order; where it names none, the engine's
// first one and those that it leads to.
Result<std::vector<int>> named_drafters(const std::string& method,
                                        const std::vector<DrafterLimits>& drafters) {
  std::vector<int> chosen;
  if (method.empty()) {
    chosen.push_back(0);
    while (chosen.size() < drafters.size() && drafters[chosen.size() - 1].leads) {
      chosen.push_back(static_cast<int>(chosen.size()));
    }
    return chosen;
  }
  std::vector<ListedDrafter> listed;
  for (const std::string& name : names_of_list(method)) {
    FT_ASSIGN_OR_RETURN(chosen.emplace_back(), find_drafter_of(name, drafters));
    const DrafterLimits& drafter = drafters[static_cast<size_t>(chosen.back())];
    listed.push_back({drafter.name, drafter.traits});
  }
  FT_RETURN_IF_ERROR(check_list("speculative.method", listed));
  return chosen;
}

Result<DraftChoice> drafter_for(const Request& request, const RequestLimits& limits) {
  const SpeculativeParams& speculative = request.speculative;
  if (limits.drafters.empty()) {
    const char* wish = speculative.enabled.value_or(false) ? "speculative.enabled is true"
                       : !speculative.method.empty()       ? "speculative.method is set"
                       : speculative.num_speculative_tokens.value_or(0) != 0
                           ? "speculative.num_speculative_tokens is set"
                           : "";
    FT_RETURN_IF_ERROR(compat({.drafts = false, .speculative_wish = wish}));
    return DraftChoice{};
  }
  DraftChoice choice;
  FT_ASSIGN_OR_RETURN(std::vector<int> chosen, named_drafters(speculative.method, limits.drafters));
  if (speculative.method.empty() && request.has_prediction()) {
    const auto drafter =
        std::find_if(limits.drafters.begin(), limits.drafters.end(),
                     [](const DrafterLimits& each) { return each.traits.looks_up; });
    if (drafter != limits.drafters.end()) {
      chosen.assign(1, static_cast<int>(drafter - limits.drafters.begin()));
    }
  }
  choice.drafter = chosen.back();
  int most = 0;
  for (const int drafter : chosen) {
    if (drafter != choice.drafter) choice.lookups |= 1u << drafter;
    most = std::max(most, limits.drafters[static_cast<size_t>(drafter)].num_speculative_tokens);
  }
  const int wanted = speculative.num_speculative_tokens.value_or(most);
  if (wanted < 0 || wanted > most) {
    return invalid_argument("speculative.num_speculative_tokens is " + std::to_string(wanted) +
                            "; this engine allows 0 to " + std::to_string(most));
  }
  if (speculative.enabled.value_or(request.pooling == Pooling::kNone))
    choice.max_draft_tokens = wanted;
  return choice;
}

// What the request's drafter looks up: nothing where that does not, and no more than can count.
Result<std::vector<int32_t>> prediction_ids(const Request& request, const SlotLengths& lengths,
                                            const RequestLimits& limits,
                                            const Tokenizer* tokenizer) {
  std::vector<int32_t> ids = request.prediction_token_ids;
  FT_RETURN_IF_ERROR(check_ids(ids, "prediction", limits));
  const bool looks_up = lengths.max_draft_tokens > 0 && lengths.lookups == 0 &&
                        limits.drafters[static_cast<size_t>(lengths.drafter)].traits.looks_up;
  if (!looks_up) return std::vector<int32_t>{};
  if (ids.empty() && !request.prediction.empty() && tokenizer != nullptr) {
    FT_ASSIGN_OR_RETURN(ids, tokenizer->encode(request.prediction, false));
  }
  const auto most = static_cast<size_t>(std::max(limits.max_prediction, 0));
  if (ids.size() > most) ids.resize(most);
  return ids;
}

Status add_text_parts(RequestState& state) {
  const SamplingParams& sampling = state.group->request.sampling;
  const Tokenizer* tokenizer = state.group->tokenizer;
  if (tokenizer == nullptr) return {};
  const std::span<const int32_t> prompt(state.sequence.tokens);
  state.detokenizer = std::make_unique<Detokenizer>(
      *tokenizer,
      Detokenizer::Options{.skip_special_tokens = sampling.skip_special_tokens,
                           .spaces_between_special_tokens = sampling.spaces_between_special_tokens},
      prompt.last(std::min(prompt.size(), kPromptContext)));
  if (sampling.stop.empty()) return {};
  FT_ASSIGN_OR_RETURN(StopStrings stops,
                      StopStrings::create(sampling.stop, sampling.include_stop_str_in_output,
                                          state.group->request.reasoning));
  state.stop_strings = std::make_unique<StopStrings>(std::move(stops));
  return {};
}

void add_logprobs(RequestState& state) {
  const SamplingParams& sampling = state.group->request.sampling;
  const Sequence& sequence = state.sequence;
  if (!sampling.logprobs && !sequence.scores_prompt) return;
  state.logprobs = std::make_unique<LogprobRecord>(
      num_alternatives(state.params), sequence.scores_prompt ? sequence.prompt_len - 1 : 0,
      sampling.logprobs ? sequence.max_len - sequence.prompt_len : 0);
}

// Nothing but an error or its user ends a request before max_tokens.
bool runs_to_the_end(const SamplingParams& sampling) {
  return sampling.ignore_eos && sampling.stop.empty() && sampling.stop_token_ids.empty() &&
         !sampling.structured_outputs;
}

// Two of n salts share a number with a chance of n * n / 2^64, and who does not know a salt cannot
// aim at its number. Keys and values depend on what attention sees.
uint64_t salt_of(const Request& request) {
  std::string salt = request.cache_salt;
  if (!request.flex_mask.empty() || !request.flex_score.empty()) {
    salt += '\0' + request.flex_mask + '\0' + request.flex_score;
  }
  return salt.empty() ? 0 : std::hash<std::string>()(salt) | 1;
}

// What the engine's expressions ask the request.
Result<std::vector<uint32_t>> flex_words(const Request& request, const RequestLimits& limits) {
  if (request.flex_mask.empty() && request.flex_score.empty()) return std::vector<uint32_t>{};
  Combination c = limits.engine;
  c.flex_wish = request.flex_mask.empty() ? "flex_score is given" : "flex_mask is given";
  FT_RETURN_IF_ERROR(compat(c));
  return pack_flex(request.flex_mask, request.flex_score);
}

void fill_sequence(const std::vector<int32_t>& ids, const SlotLengths& lengths,
                   const RequestLimits& limits, const Request& request, Sequence& sequence) {
  sequence.prompt_len = lengths.prompt_len;
  sequence.max_len = lengths.max_len;
  sequence.max_draft_tokens = lengths.max_draft_tokens;
  sequence.drafter = lengths.drafter;
  sequence.lookups = lengths.lookups;
  sequence.priority = request.priority;
  sequence.cache_salt = salt_of(request);
  sequence.pools = request.pooling != Pooling::kNone;
  sequence.tokens.reserve(static_cast<size_t>(lengths.max_len));
  sequence.tokens.assign(ids.begin(), ids.end());
  sequence.blocks.reserve(static_cast<size_t>(limits.max_blocks));
  sequence.window_blocks.reserve(static_cast<size_t>(limits.max_window_blocks));
}

int64_t deadline(int64_t now, double seconds) {
  return seconds > 0 ? now + static_cast<int64_t>(seconds * 1e9) : INT64_MAX;
}

void set_times(const Request& request, RequestState& state) {
  state.submitted_ns = now_ns();
  state.queue_deadline_ns = deadline(state.submitted_ns, request.queue_timeout_seconds);
  state.deadline_ns = deadline(state.submitted_ns, request.timeout_seconds);
}

// The prompt is scored with choice 0 alone; the others may find it in the prefix cache.
void fill_choice(const SlotWishes& wishes, int choice, RequestState& state) {
  Sequence& sequence = state.sequence;
  sequence.owner = &state;
  sequence.features = wishes.features;
  if (choice > 0) sequence.features &= ~uint32_t{kScoresPrompt};
  sequence.scores_prompt = (sequence.features & kScoresPrompt) != 0;
  sequence.bypasses_prefix_cache = sequence.scores_prompt || sequence.pools;
  sequence.may_pause = (sequence.features & kHasGrammar) != 0;
  state.params = wishes.params;
  state.params.choice = choice;
  state.params.cache_salt = sequence.cache_salt;
  sequence.is_predicted = state.params.num_prediction > 0;
  state.init_words = wishes.init_words;
  sequence.num_init_words = static_cast<int>(state.init_words.size());
  const SamplingParams& sampling = state.group->request.sampling;
  sequence.min_len = runs_to_the_end(sampling) ? sequence.max_len : state.params.min_len;
  if (!sampling.logits_processors.empty()) {
    state.processors = std::make_unique<ProcessorChain>(sampling.logits_processors);
    state.params.processors = reinterpret_cast<uint64_t>(state.processors.get());
  }
}

Result<std::shared_ptr<const EngineAdapter>> adapter_of(const Request& request,
                                                        const RequestLimits& limits) {
  if (request.adapter.empty()) return std::shared_ptr<const EngineAdapter>();
  FT_RETURN_IF_ERROR(compat({.lora = limits.adapters != nullptr, .adapter = request.adapter}));
  return limits.adapters->find(request.adapter);
}

// Rows in which the adapter acts have its embedding, all others the model's.
Status check_rows(const std::vector<int32_t>& ids, const EngineAdapter* adapter,
                  const RequestLimits& limits) {
  const int32_t own = limits.vocab_size - limits.added_ids;
  const auto acts_from = adapter == nullptr ? std::nullopt : begin_of_adapter(*adapter, ids);
  for (size_t i = 0; i < ids.size(); ++i) {
    const bool acts = acts_from && static_cast<int32_t>(i) >= *acts_from;
    const int32_t known = acts ? adapter->num_ids(own) : own;
    if (ids[i] < known) continue;
    return invalid_argument("prompt token id " + std::to_string(ids[i]) +
                            " is not in the vocabulary of " + std::to_string(known) +
                            (acts ? " of the adapter '" + adapter->info.name + "'"
                                  : " of the model; name the adapter that adds it as 'model'"));
  }
  return {};
}

// A prompt in which the adapter does not act is one without it.
void set_adapter(const std::shared_ptr<const EngineAdapter>& adapter,
                 const std::vector<int32_t>& ids, RequestState& state) {
  if (adapter == nullptr) return;
  const std::optional<int32_t> begin = begin_of_adapter(*adapter, ids);
  if (!begin) return;
  state.sequence.adapter_begin = *begin;
  state.params.adapter_begin = *begin;
  state.adapter = adapter;
  state.sequence.adapter = adapter->number;
  state.params.adapter_number = adapter->number;
  state.sequence.features |= kHasAdapters;
  if (adapter->image->changes_feed_forward()) state.sequence.features |= kAdaptsMlp;
  if (adapter->image->changes_ends()) state.sequence.features |= kAdaptsEnds;
}

SlotLengths lengths_of(const Request& request, int prompt_len, const DraftChoice& draft,
                       const RequestLimits& limits) {
  const int64_t max_tokens =
      request.pooling == Pooling::kNone ? int64_t{request.sampling.max_tokens} : 0;
  return {
      .prompt_len = prompt_len,
      .max_len = static_cast<int>(std::min<int64_t>(limits.max_model_len, prompt_len + max_tokens)),
      .max_draft_tokens = draft.max_draft_tokens,
      .drafter = draft.drafter,
      .lookups = draft.lookups};
}

std::shared_ptr<RequestGroup> make_group(Request request, OutputCallback callback,
                                         const Tokenizer* tokenizer, uint64_t number) {
  auto group = std::make_shared<RequestGroup>();
  group->request = std::move(request);
  if (group->request.request_id.empty()) {
    group->request.request_id = "req-" + std::to_string(number);
  }
  group->callback = std::move(callback);
  group->tokenizer = group->request.sampling.detokenize ? tokenizer : nullptr;
  group->num_open = group->request.sampling.n;
  return group;
}

}  // namespace

Result<std::vector<std::unique_ptr<RequestState>>> build_request(Request request,
                                                                 OutputCallback callback,
                                                                 const RequestLimits& limits,
                                                                 const Tokenizer* tokenizer,
                                                                 uint64_t number) {
  FT_RETURN_IF_ERROR(check_request(request, limits, tokenizer != nullptr));
  FT_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, prompt_ids(request, limits, tokenizer));
  FT_ASSIGN_OR_RETURN(const DraftChoice draft, drafter_for(request, limits));
  FT_ASSIGN_OR_RETURN(const std::shared_ptr<const EngineAdapter> adapter,
                      adapter_of(request, limits));
  FT_RETURN_IF_ERROR(check_rows(ids, adapter.get(), limits));
  const SlotLengths lengths = lengths_of(request, static_cast<int>(ids.size()), draft, limits);
  SlotIds slot_ids;
  FT_ASSIGN_OR_RETURN(slot_ids.flex, flex_words(request, limits));
  FT_ASSIGN_OR_RETURN(slot_ids.prediction, prediction_ids(request, lengths, limits, tokenizer));
  if (!request.sampling.bad_words.empty()) {
    FT_ASSIGN_OR_RETURN(slot_ids.bad_words,
                        bad_word_ids(request.sampling.bad_words, *tokenizer, limits.vocab_size));
  }
  FT_ASSIGN_OR_RETURN(const SlotWishes wishes,
                      slot_wishes(request, lengths, slot_ids, limits, number));
  const auto group = make_group(std::move(request), std::move(callback), tokenizer, number);
  group->judge = limits.judge;
  group->tokens = limits.tokens;
  group->dense = limits.dense;
  std::vector<std::unique_ptr<RequestState>> states;
  for (int choice = 0; choice < group->num_open; ++choice) {
    RequestState& state = *states.emplace_back(std::make_unique<RequestState>());
    state.group = group;
    state.sequence.id = number + static_cast<uint64_t>(choice);
    fill_sequence(ids, lengths, limits, group->request, state.sequence);
    fill_choice(wishes, choice, state);
    set_adapter(adapter, ids, state);
    set_times(group->request, state);
    state.output.request_id = group->request.request_id;
    state.output.index = choice;
    state.stats.num_prompt_tokens = lengths.prompt_len;
    if (state.sequence.pools) {
      const int64_t rows = group->request.pooling == Pooling::kTokens ? lengths.prompt_len : 1;
      state.embedding.resize(static_cast<size_t>(rows * limits.hidden_size));
    }
    add_logprobs(state);
    FT_RETURN_IF_ERROR(add_text_parts(state));
  }
  return states;
}

}  // namespace foretoken
