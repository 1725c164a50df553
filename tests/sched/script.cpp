#include "sched/script.h"

#include <algorithm>

namespace foretoken {
namespace {

int value_of(const std::string& word) { return std::stoi(word.substr(word.find('=') + 1)); }

bool starts_with(const std::string& word, const char* prefix) { return word.rfind(prefix, 0) == 0; }

}  // namespace

std::string SchedulerScript::run(const std::string& script) {
  std::istringstream lines(script);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const size_t first = line.find_first_not_of(' ');
    if (first == std::string::npos) continue;
    const std::string problem = command(line.substr(first));
    if (!problem.empty()) return "line " + std::to_string(number) + ": " + problem;
  }
  return command("end");
}

std::string SchedulerScript::command(const std::string& line) {
  std::istringstream words(line);
  std::string verb;
  words >> verb;
  if (verb == "span") {
    if (!in_plan_ || next_span_ >= in_flight_.back().spans.size()) return "no such span: " + line;
    const std::string got = describe(in_flight_.back().spans[next_span_++]);
    return got == line ? "" : "wanted '" + line + "', got '" + got + "'";
  }
  if (in_plan_ && next_span_ < in_flight_.back().spans.size()) {
    return "unexpected '" + describe(in_flight_.back().spans[next_span_]) + "'";
  }
  in_plan_ = false;
  if (verb == "submit") {
    submit(words);
  } else if (verb == "plan") {
    StepPlan plan;
    const std::vector<DraftGrant> grants = read_grants(words);
    const bool planned = scheduler_.plan(plan, grants, paced_);
    last_ = plan;
    if (planned) {
      in_flight_.push_back(std::move(plan));
      in_plan_ = true;
      next_span_ = 0;
    }
  } else if (verb == "done") {
    return done(words);
  } else if (verb == "finish") {
    std::string name;
    words >> name;
    (void)scheduler_.finish(*sequences_.at(name));
  } else if (verb == "pace") {
    words >> paced_.beside >> paced_.alone;
  } else if (verb == "bound") {
    bound(words);
  } else if (verb == "hold" || verb == "let") {
    std::string name;
    words >> name;
    sequences_.at(name)->is_held = verb == "hold";
  } else if (verb == "state") {
    return state(words);
  } else if (verb != "end") {
    return "unknown command " + verb;
  }
  return "";
}

void SchedulerScript::bound(std::istringstream& words) {
  constexpr int64_t kMillisecond = 1'000'000;
  int ms = 0;
  words >> ms;
  times_ = {};
  times_.target.add(1, kMillisecond);
  times_.target.add(1000, 1000 * kMillisecond);
  bound_ = std::make_unique<TimeBound>(ms * kMillisecond, config_.max_num_batched_tokens, times_);
  paced_.bound = bound_.get();
}

std::vector<DraftGrant> SchedulerScript::read_grants(std::istringstream& words) const {
  std::vector<DraftGrant> grants;
  for (std::string word; words >> word;) {
    const std::string key = word.substr(0, word.find('='));
    const bool numbered = key.back() >= '0' && key.back() <= '9';
    const size_t drafter = numbered ? static_cast<size_t>(key.back() - '0') : 0;
    if (drafter >= grants.size()) grants.resize(drafter + 1);
    const std::string field = numbered ? key.substr(0, key.size() - 1) : key;
    DraftGrant& grant = grants[drafter];
    if (field == "limit") grant.num_draft_tokens = value_of(word);
    if (field == "rows") grant.catch_up_rows = value_of(word);
    if (field == "spans") grant.max_spans = value_of(word);
    if (field == "missing") grant.max_missing = value_of(word);
    if (field == "class") grant.max_class = value_of(word);
  }
  return grants;
}

void SchedulerScript::submit(std::istringstream& words) {
  auto sequence = std::make_unique<Sequence>();
  std::string name;
  words >> name;
  int base = 100;
  for (std::string word; words >> word;) {
    if (word == "scores") sequence->scores_prompt = true;
    if (word == "pools") sequence->pools = true;
    if (word == "bypass") sequence->bypasses_prefix_cache = true;
    if (word.find('=') == std::string::npos) continue;
    const int value = value_of(word);
    if (starts_with(word, "priority")) sequence->priority = value;
    if (starts_with(word, "words")) sequence->num_init_words = value;
    if (starts_with(word, "features")) sequence->features = static_cast<uint32_t>(value);
    if (starts_with(word, "prompt")) sequence->prompt_len = value;
    if (starts_with(word, "max")) sequence->max_len = value;
    if (starts_with(word, "drafts")) sequence->max_draft_tokens = value;
    if (starts_with(word, "drafter=")) sequence->drafter = value;
    if (starts_with(word, "adapter")) sequence->adapter = value;
    if (starts_with(word, "begin")) sequence->adapter_begin = value;
    if (starts_with(word, "base")) base = value;
    if (starts_with(word, "salt")) sequence->cache_salt = static_cast<uint64_t>(value);
  }
  for (int i = 0; i < sequence->prompt_len; ++i) sequence->tokens.push_back(base + i);
  scheduler_.add(*sequence);
  sequences_[name] = std::move(sequence);
}

std::string SchedulerScript::done(std::istringstream& words) {
  if (in_flight_.empty()) return "no step in flight";
  std::map<std::string, std::string> results;
  for (std::string word; words >> word;) {
    results[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
  }
  const StepPlan plan = std::move(in_flight_.front());
  in_flight_.pop_front();
  for (const Span& span : plan.spans) {
    for (const auto& [name, sequence] : sequences_) {
      if (sequence.get() != span.sequence) continue;
      const std::string result = results.count(name) > 0 ? results[name] : "0";
      const std::vector<int32_t> ids(static_cast<size_t>(std::stoi(result)), 7);
      const size_t colon = result.find(':');
      const bool told = colon != std::string::npos;
      (void)scheduler_.reconcile(
          span, {.ids = ids,
                 .ended = result.find('!') != std::string::npos,
                 .draft_missing = told ? std::stoi(result.substr(colon + 1)) : sequence->max_len});
    }
  }
  return "";
}

std::string SchedulerScript::state(std::istringstream& words) {
  const BlockPool* windowed = scheduler_.window_blocks();
  BatchDemand demand;
  scheduler_.describe(demand);
  const std::map<std::string, int> values = {
      {"free", scheduler_.blocks().num_free()},
      {"window_free", windowed != nullptr ? windowed->num_free() : 0},
      {"running", scheduler_.num_running()},
      {"waiting", scheduler_.num_waiting()},
      {"slots", scheduler_.num_free_slots()},
      {"preemptions", static_cast<int>(scheduler_.stats().num_preemptions)},
      {"lookups", static_cast<int>(scheduler_.stats().num_lookups)},
      {"rows", last_.num_rows},
      {"logits", last_.num_logits_rows},
      {"words", last_.num_words},
      {"passes", last_.drafts[0].num_draft_tokens},
      {"catch_up", last_.drafts[0].catch_up_rows},
      {"drafting", last_.drafts[0].num_spans},
      {"passes1", last_.drafts[1].num_draft_tokens},
      {"catch_up1", last_.drafts[1].catch_up_rows},
      {"drafting1", last_.drafts[1].num_spans},
      {"decoding", demand.drafters[0].num_decoding},
      {"ready", demand.drafters[0].num_ready},
      {"coming", demand.drafters[0].num_coming},
      {"fewest", demand.drafters[0].fewest_missing},
      {"features", static_cast<int>(last_.features)},
      {"loads", static_cast<int>(last_.adapter_loads.size())}};
  for (std::string word; words >> word;) {
    const std::string key = word.substr(0, word.find('='));
    if (values.at(key) != value_of(word)) {
      return "wanted " + word + ", got " + std::to_string(values.at(key));
    }
  }
  return "";
}

std::string SchedulerScript::describe(const Span& span) const {
  std::string text = "span ?";
  for (const auto& [name, sequence] : sequences_) {
    if (sequence.get() == span.sequence) text = "span " + name;
  }
  text += " tokens=" + std::to_string(span.num_tokens);
  if (span.max_verified > 0) text += " drafts=" + std::to_string(span.max_verified);
  if (span.num_draft_tokens > 0) text += " limit=" + std::to_string(span.num_draft_tokens);
  if (span.draft_rows > 0) text += " rows=" + std::to_string(span.draft_rows);
  if (span.num_hit_tokens > 0) text += " hits=" + std::to_string(span.num_hit_tokens);
  if (span.samples) text += " samples";
  if (span.is_first) text += " first";
  if (span.is_first && span.sequence->adapter != 0) {
    text += " place=" + std::to_string(span.sequence->adapter_slot);
  }
  if (span.wants_all) text += " all";
  return text;
}

}  // namespace foretoken
