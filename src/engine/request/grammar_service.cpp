#include "engine/request/grammar_service.h"

#include "base/background.h"
#include "base/cpu_clock.h"

namespace foretoken {
namespace {

const StructuredOutputs& wanted_by(const RequestState& request) {
  return *request.group->request.sampling.structured_outputs;
}

}  // namespace

GrammarService::GrammarService(std::unique_ptr<GrammarCompiler> compiler,
                               const MaskExchange& exchange, GrammarServiceConfig config,
                               Ready ready)
    : compiler_(std::move(compiler)),
      config_(std::move(config)),
      mask_words_(exchange.mask_words),
      ready_(std::move(ready)),
      thread_(exchange, config_.slow_ns, config_.num_helpers, config_.masks_ready,
              config_.repair_share) {}

GrammarService::~GrammarService() {
  stop_compiling();
  thread_.stop();
}

void GrammarService::start() {
  thread_.start();
  for (int i = 0; i < config_.num_threads; ++i) compilers_.emplace_back([this] { main(); });
}

void GrammarService::stop_compiling() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& compiler : compilers_) compiler.join();
  compilers_.clear();
}

void GrammarService::prepare(Choices choices) {
  const Result<GrammarText> text = grammar_text(wanted_by(*choices.front()));
  if (!text.ok()) {
    pass_on(std::move(choices), text.status());
    return;
  }
  if (const auto cached = find_cached(text.value().key())) {
    pass_on(std::move(choices), *cached);
    return;
  }
  std::unique_lock lock(mutex_);
  if (stopping_) {
    lock.unlock();
    choices.front()->group->end_requested.store(true);
    ready_(std::move(choices));
    return;
  }
  waiting_.push_back(std::move(choices));
  wake_.notify_one();
}

void GrammarService::main() {
  enter_background("ft-compile");
  for (;;) {
    Choices choices;
    bool shall_compile = true;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return !waiting_.empty() || stopping_; });
      if (waiting_.empty()) return;
      choices = std::move(waiting_.front());
      waiting_.pop_front();
      shall_compile = !stopping_;
    }
    RequestGroup& group = *choices.front()->group;
    if (!shall_compile) group.end_requested.store(true);
    // One that was aborted meanwhile is not worth the work.
    if (group.end_requested.load()) {
      ready_(std::move(choices));
      continue;
    }
    const Result<Compiled> compiled = compile(choices);
    pass_on(std::move(choices), compiled);
  }
}

Result<GrammarService::Compiled> GrammarService::compile(const Choices& choices) {
  FT_ASSIGN_OR_RETURN(const GrammarText text, grammar_text(wanted_by(*choices.front())));
  const std::string key = text.key();
  // Another request may have brought it meanwhile.
  if (auto cached = find_cached(key)) return *cached;
  num_compiled_.fetch_add(1);
  Compiled compiled;
  FT_ASSIGN_OR_RETURN(compiled.grammar, compiler_->compile(text));
  compiled.habit = find_habit(*compiled.grammar);
  remember(key, compiled);
  return compiled;
}

// A trial of the first mask, so that no step meets a slow one unwarned.
MaskPace::Habit GrammarService::find_habit(const Grammar& grammar) const {
  auto habit = std::make_shared<std::atomic<bool>>(false);
  const Result<std::unique_ptr<TokenMask>> mask = grammar.start(config_.eos_ids, false);
  if (!mask.ok()) return habit;
  std::vector<uint32_t> words(static_cast<size_t>(mask_words_));
  const int64_t begin = thread_cpu_ns();
  const Status filled = mask.value()->fill(words);
  habit->store(filled.ok() && thread_cpu_ns() - begin > config_.slow_ns / 2);
  return habit;
}

std::optional<GrammarService::Compiled> GrammarService::find_cached(const std::string& key) {
  std::lock_guard lock(cache_mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return std::nullopt;
  cached_.splice(cached_.begin(), cached_, found->second);
  return found->second->second;
}

void GrammarService::remember(const std::string& key, const Compiled& compiled) {
  std::lock_guard lock(cache_mutex_);
  if (by_key_.contains(key)) return;
  cached_.emplace_front(key, compiled);
  by_key_.emplace(key, cached_.begin());
  if (cached_.size() <= config_.max_cached) return;
  by_key_.erase(cached_.back().first);
  cached_.pop_back();
}

void GrammarService::pass_on(Choices choices, const Result<Compiled>& compiled) {
  for (const std::unique_ptr<RequestState>& request : choices) {
    request->refused = compiled.ok() ? give(compiled.value(), *request) : compiled.status();
  }
  ready_(std::move(choices));
}

Status GrammarService::give(const Compiled& compiled, RequestState& request) {
  const bool ignore_eos = request.group->request.sampling.ignore_eos;
  FT_ASSIGN_OR_RETURN(std::unique_ptr<TokenMask> mask,
                      compiled.grammar->start(config_.eos_ids, ignore_eos));
  request.grammar =
      std::make_shared<GrammarSequence>(std::move(mask), request.sequence.prompt_len, mask_words_,
                                        config_.max_draft_tokens, compiled.habit);
  request.params.grammar = thread_.add(request.grammar);
  return {};
}

}  // namespace foretoken
