#include "conformance/field_draws.h"

#include <algorithm>
#include <limits>
#include <sstream>
#include <string_view>
#include <type_traits>

#include "config/sampling_fields.h"

namespace foretoken {
namespace {

int pick(std::mt19937& random, int low, int high) {
  return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
}

float between(std::mt19937& random, float low, float high) {
  return low + (high - low) * static_cast<float>(random() % 1000) / 1000.0f;
}

int32_t some_id(std::mt19937& random, int vocab) { return pick(random, 10, vocab - 1); }

// Looks at the last token of the history and at the choice.
class ForbidAfterLast final : public LogitsProcessor {
 public:
  explicit ForbidAfterLast(int step) : step_(step) {}
  void apply(const LogitsContext& context, std::span<float> logits) const override {
    const std::span<const int32_t> ids =
        context.output_ids.empty() ? context.prompt_ids : context.output_ids;
    const size_t last = static_cast<size_t>(ids.back() + context.choice);
    const float forbidden = -std::numeric_limits<float>::infinity();
    for (size_t id = last % static_cast<size_t>(step_); id < logits.size();
         id += static_cast<size_t>(step_)) {
      logits[id] = forbidden;
    }
  }

 private:
  const int step_;
};

// Raises ids by how far the output has come.
class PushByLength final : public LogitsProcessor {
 public:
  void apply(const LogitsContext& context, std::span<float> logits) const override {
    const size_t place = context.prompt_ids.size() + 7 * context.output_ids.size();
    for (size_t i = 0; i < 40; ++i) logits[(place * 13 + i) % logits.size()] += 3.0f;
  }
};

void draw_bias(Request& r, std::mt19937& random, int vocab) {
  for (int i = pick(random, 1, 30); i > 0; --i) {
    const int32_t id = some_id(random, vocab);
    auto& bias = r.sampling.logit_bias;
    const auto same = [&](const auto& entry) { return entry.first == id; };
    if (std::none_of(bias.begin(), bias.end(), same)) {
      bias.emplace_back(id, between(random, -100, 8));
    }
  }
}

void draw_allowed(Request& r, std::mt19937& random, int vocab) {
  r.sampling.allowed_token_ids.emplace();
  for (int i = pick(random, 60, 900); i > 0; --i) {
    r.sampling.allowed_token_ids->push_back(some_id(random, vocab));
  }
}

void draw_bad_words(Request& r, std::mt19937& random, int) {
  for (const char* word : {"the", "a", "and", " was", "to the", "said", ".", "he"}) {
    if (random() % 2 == 0) r.sampling.bad_words.emplace_back(word);
  }
  r.sampling.bad_words.emplace_back("in");
}

void draw_stop(Request& r, std::mt19937& random, int) {
  for (const char* stop : {" the", "an", ". ", "e", " of ", "ing", "never to be seen"}) {
    if (random() % 3 == 0) r.sampling.stop.emplace_back(stop);
  }
  r.sampling.stop.emplace_back("ed ");
  r.sampling.detokenize = true;
}

void draw_stop_ids(Request& r, std::mt19937& random, int vocab) {
  for (int i = pick(random, 1, 20); i > 0; --i) {
    r.sampling.stop_token_ids.push_back(some_id(random, vocab));
  }
}

void draw_processors(Request& r, std::mt19937& random, int) {
  r.sampling.logits_processors.push_back(std::make_shared<ForbidAfterLast>(pick(random, 2, 9)));
  if (random() % 2 == 0) r.sampling.logits_processors.push_back(std::make_shared<PushByLength>());
}

// The prompt alone: what would need tokens goes.
void draw_pooling(Request& r, std::mt19937& random, int) {
  constexpr Pooling kWays[] = {Pooling::kLast, Pooling::kMean, Pooling::kCls};
  r.pooling = kWays[random() % 3];
  r.normalize = random() % 2 == 0;
  r.sampling = {};
  r.speculative = {};
}

void make_prompt(Request& r, std::mt19937& random, int vocab) {
  std::vector<int32_t> piece;
  for (int i = pick(random, 1, 12); i > 0; --i) piece.push_back(some_id(random, vocab));
  for (int i = pick(random, 1, 4); i > 0; --i) {
    r.prompt_token_ids.insert(r.prompt_token_ids.end(), piece.begin(), piece.end());
  }
}

}  // namespace

namespace {

std::vector<FieldDraw> written_draws() {
  using Random = std::mt19937;
  return {
      {"temperature",
       [](Request& r, Random& x, int) { r.sampling.temperature = between(x, 0.1f, 2); }},
      {"greedy",
       [](Request& r, Random&, int) {
         r.sampling.temperature = 0;
         r.sampling.n = 1;
       }},
      {"top_p", [](Request& r, Random& x, int) { r.sampling.top_p = between(x, 0.05f, 1); }},
      {"top_k", [](Request& r, Random& x, int) { r.sampling.top_k = pick(x, -1, 60); }},
      {"min_p", [](Request& r, Random& x, int) { r.sampling.min_p = between(x, 0, 0.3f); }},
      {"presence_penalty",
       [](Request& r, Random& x, int) { r.sampling.presence_penalty = between(x, -2, 2); }},
      {"frequency_penalty",
       [](Request& r, Random& x, int) { r.sampling.frequency_penalty = between(x, -2, 2); }},
      {"repetition_penalty",
       [](Request& r, Random& x, int) { r.sampling.repetition_penalty = between(x, 0.5f, 2); }},
      {"logit_bias", draw_bias},
      {"bad_words", draw_bad_words},
      {"allowed_token_ids", draw_allowed},
      {"logits_processors", draw_processors},
      {"logprobs", [](Request& r, Random& x, int) { r.sampling.logprobs = pick(x, 0, 8); }},
      {"prompt_logprobs",
       [](Request& r, Random& x, int) { r.sampling.prompt_logprobs = pick(x, 0, 8); }},
      {"stop", draw_stop},
      {"include_stop",
       [](Request& r, Random& x, int) {
         r.sampling.include_stop_str_in_output = true;
         draw_stop(r, x, 0);
       }},
      {"stop_token_ids", draw_stop_ids},
      {"min_tokens", [](Request& r, Random& x,
                        int) { r.sampling.min_tokens = pick(x, 1, r.sampling.max_tokens); }},
      {"ignore_eos", [](Request& r, Random&, int) { r.sampling.ignore_eos = true; }},
      {"n",
       [](Request& r, Random& x, int) {
         if (r.sampling.temperature > 0) r.sampling.n = pick(x, 2, 4);
       }},
      {"detokenize",
       [](Request& r, Random&, int) { r.sampling.detokenize = r.sampling.stop.size() > 0; }},
      {"skip_special_tokens",
       [](Request& r, Random& x, int) {
         r.sampling.skip_special_tokens = false;
         r.sampling.spaces_between_special_tokens = x() % 2 == 0;
       }},
      {"truncate_prompt_tokens",
       [](Request& r, Random& x, int) { r.truncate_prompt_tokens = pick(x, 1, 30); }},
      {"cache_salt", [](Request& r, Random& x, int) { r.cache_salt = std::to_string(x() % 3); }},
      {"drafts",
       [](Request& r, Random& x, int) { r.speculative.enabled = x() % 2 == 0 ? false : true; }},
      {"pooling", draw_pooling},
  };
}

// Of rows that shape draws and have no way of their own above: a value between -2 and 2.
FieldDraw draw_of(const SamplingField& field) {
  return {field.name, [&field](Request& r, std::mt19937& random, int) {
            const double low = std::max(field.range.low, -2.0);
            const double high = std::min(field.range.high, 2.0);
            visit_sampling_member(field, r.sampling, [&](auto& value) {
              using T = std::decay_t<decltype(value)>;
              if constexpr (std::is_same_v<T, int>) {
                value = pick(random, static_cast<int>(low), static_cast<int>(high));
              } else if constexpr (std::is_same_v<T, float>) {
                value = static_cast<float>(high) -
                        between(random, 0, 1) * static_cast<float>(high - low);
              }
            });
          }};
}

}  // namespace

const std::vector<FieldDraw>& field_draws() {
  static const std::vector<FieldDraw> draws = [] {
    std::vector<FieldDraw> all = written_draws();
    for (const SamplingField& field : sampling_fields()) {
      const bool is_written = std::ranges::any_of(
          all, [&](const FieldDraw& draw) { return draw.name == std::string_view(field.name); });
      // Pooling stays last.
      if (shapes_draws(field) && !is_written) all.insert(all.end() - 1, draw_of(field));
    }
    return all;
  }();
  return draws;
}

Request draw_request(int number, int vocab_size) {
  std::mt19937 random(static_cast<unsigned>(number) * 7919 + 1);
  Request request;
  make_prompt(request, random, vocab_size);
  request.sampling.max_tokens = pick(random, 1, 16);
  request.sampling.seed = random() % 5;
  const auto& draws = field_draws();
  const auto count = static_cast<int>(draws.size());
  const double chance = number < count ? 0 : between(random, 0.05f, 0.5f);
  for (int i = 0; i < count; ++i) {
    // Pooling last, since it leaves nothing else.
    const bool rare = i + 1 == count;
    const bool drawn = random() % 1000 < static_cast<unsigned>(1000 * (rare ? chance / 4 : chance));
    if (i == number || drawn) draws[static_cast<size_t>(i)].set(request, random, vocab_size);
  }
  return request;
}

std::string describe(const Request& request) {
  const SamplingParams& s = request.sampling;
  std::ostringstream text;
  text << "prompt " << request.prompt_token_ids.size() << ", max_tokens " << s.max_tokens << ", n "
       << s.n;
  for (const SamplingField& field : sampling_fields()) {
    if (shapes_draws(field)) text << ", " << field.name << " " << sampling_value(field, s);
  }
  text << ", bias " << s.logit_bias.size() << ", bad " << s.bad_words.size() << ", allowed "
       << (s.allowed_token_ids ? s.allowed_token_ids->size() : 0) << ", processors "
       << s.logits_processors.size() << ", logprobs " << s.logprobs.value_or(-9) << " "
       << s.prompt_logprobs.value_or(-9) << ", stop " << s.stop.size() << " "
       << s.stop_token_ids.size() << ", min_tokens " << s.min_tokens << ", pooling "
       << static_cast<int>(request.pooling);
  return text.str();
}

}  // namespace foretoken
