#include "engine/request/grammar_service.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <set>

#include "support/folders.h"
#include "support/gate.h"

namespace foretoken {
namespace {

// The exchange is never used: nothing runs.
class GrammarServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto tokenizer =
        load_hf_tokenizer(std::filesystem::path(foretoken::kSourceFolder) / "models/foretoken-7m");
    ASSERT_TRUE(tokenizer.ok());
    const std::vector<int32_t> eos_ids{0};
    auto compiler = tokenizer.value()->grammar_compiler(3072, eos_ids);
    ASSERT_TRUE(compiler.ok());
    exchange_.posted = exchange_.passed = exchange_.taken = exchange_.answered = &word_;
    exchange_.max_spans = 1;
    exchange_.mask_words = 96;
    service_ = std::make_unique<GrammarService>(
        std::move(compiler).value(), exchange_,
        GrammarServiceConfig{
            .eos_ids = eos_ids, .max_draft_tokens = 3, .num_threads = 2, .max_cached = 2},
        [this](GrammarService::Choices choices) {
          std::lock_guard lock(mutex_);
          ready_.push_back(std::move(choices));
          changed_.notify_all();
        });
    service_->start();
  }

  static GrammarService::Choices choices_of(const std::string& regex, int n = 1) {
    auto group = std::make_shared<RequestGroup>();
    group->request.sampling.structured_outputs.emplace();
    group->request.sampling.structured_outputs->regex = regex;
    GrammarService::Choices choices;
    for (int i = 0; i < n; ++i) {
      choices.push_back(std::make_unique<RequestState>());
      choices.back()->group = group;
      choices.back()->sequence.prompt_len = 4;
    }
    return choices;
  }

  GrammarService::Choices take() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, test::kPatience, [&] { return !ready_.empty(); }));
    GrammarService::Choices choices = std::move(ready_.front());
    ready_.erase(ready_.begin());
    return choices;
  }

  uint64_t word_ = 0;
  MaskExchange exchange_{};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<GrammarService::Choices> ready_;
  std::unique_ptr<GrammarService> service_;
};

TEST_F(GrammarServiceTest, EveryChoiceGetsItsOwnSequence) {
  service_->prepare(choices_of("[a-z]+", 3));
  const GrammarService::Choices choices = take();
  std::set<uint64_t> numbers;
  for (const auto& choice : choices) {
    EXPECT_TRUE(choice->refused.ok());
    EXPECT_NE(choice->grammar, nullptr);
    numbers.insert(choice->params.grammar);
  }
  EXPECT_EQ(numbers.size(), 3u);
  EXPECT_FALSE(numbers.contains(0));
}

TEST_F(GrammarServiceTest, CompilesEqualGrammarsOnceAndForgetsTheOldest) {
  for (const char* text : {"a+", "a+", "b+", "a+", "c+", "a+", "b+"}) {
    service_->prepare(choices_of(text));
    EXPECT_TRUE(take()[0]->refused.ok());
  }
  EXPECT_EQ(service_->num_compiled(), 4);
}

TEST_F(GrammarServiceTest, FaultsComeWithTheRequest) {
  service_->prepare(choices_of("(a"));
  const GrammarService::Choices choices = take();
  EXPECT_EQ(choices[0]->refused.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(choices[0]->grammar, nullptr);
}

TEST_F(GrammarServiceTest, AbortedRequestsAreNotCompiled) {
  GrammarService::Choices choices = choices_of("d+");
  choices[0]->group->end_requested.store(true);
  service_->prepare(std::move(choices));
  EXPECT_TRUE(take()[0]->group->end_requested.load());
  EXPECT_EQ(service_->num_compiled(), 0);
}

TEST_F(GrammarServiceTest, NobodyIsLostAtTheEnd) {
  for (int i = 0; i < 50; ++i) service_->prepare(choices_of("x{" + std::to_string(i + 1) + "}"));
  service_->stop_compiling();
  service_->prepare(choices_of("late"));
  std::lock_guard lock(mutex_);
  EXPECT_EQ(ready_.size(), 51u);
  for (const auto& choices : ready_) {
    EXPECT_TRUE(choices[0]->grammar != nullptr || choices[0]->group->end_requested.load());
  }
}

}  // namespace
}  // namespace foretoken
