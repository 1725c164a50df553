#include "engine/parallel/sleep_together.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <future>

#include "base/result.h"
#include "support/quiet_engine.h"

namespace foretoken {
namespace {

// One that sleeps once it may, as the first call that then waits says.
class DrowsyEngine final : public test::QuietEngine {
 public:
  explicit DrowsyEngine(bool is_free) : is_free_(is_free) {}
  Status sleep(int level, bool, int64_t*, const std::stop_token& recall) override {
    std::unique_lock lock(mutex_);
    ++num_asked_;
    changed_.notify_all();
    if (!changed_.wait(lock, recall, [&] { return is_free_ || level_ > 0; })) {
      return aborted("recalled");
    }
    level_ = std::max(level_, level);
    changed_.notify_all();
    return {};
  }
  Status wake_up(const std::vector<std::string>&) override {
    const std::lock_guard lock(mutex_);
    level_ = 0;
    return {};
  }
  EngineStats stats() const override {
    const std::lock_guard lock(mutex_);
    EngineStats stats;
    stats.sleep_level = level_;
    return stats;
  }
  void set_free() {
    const std::lock_guard lock(mutex_);
    is_free_ = true;
    changed_.notify_all();
  }
  void wait_until_asked(int times) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return num_asked_ >= times; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  bool is_free_;
  int level_ = 0;
  int num_asked_ = 0;
};

// Two engines, of which the second waits for requests.
class SleepOfTwo : public testing::Test {
 protected:
  SleepOfTwo() {
    for (const bool is_free : {true, false}) {
      engines_.push_back(std::make_unique<DrowsyEngine>(is_free));
    }
  }
  DrowsyEngine& busy() { return static_cast<DrowsyEngine&>(*engines_[1]); }
  std::future<StatusCode> call(int level, const std::stop_token& recall) {
    auto made = std::async(std::launch::async, [this, level, recall] {
      return sleeps_.sleep(level, false, nullptr, recall).code();
    });
    ++num_calls_;
    for (const auto& engine : engines_) {
      static_cast<DrowsyEngine&>(*engine).wait_until_asked(num_calls_);
    }
    return made;
  }
  std::vector<int> levels() const {
    return {engines_[0]->stats().sleep_level, engines_[1]->stats().sleep_level};
  }

  std::vector<std::unique_ptr<Engine>> engines_;
  SleepTogether sleeps_{engines_};
  int num_calls_ = 0;
};

TEST_F(SleepOfTwo, OneCallThatIsRecalledWakesNoEngineOfAnother) {
  std::stop_source recall;
  auto first = call(1, recall.get_token());
  auto second = call(1, {});
  recall.request_stop();
  EXPECT_EQ(first.get(), StatusCode::kAborted);
  busy().set_free();
  EXPECT_EQ(second.get(), StatusCode::kOk);
  EXPECT_EQ(levels(), (std::vector{1, 1}));
}

TEST_F(SleepOfTwo, AllCallsThatAreRecalledWakeAllEngines) {
  std::stop_source recall;
  auto first = call(1, recall.get_token());
  auto second = call(2, recall.get_token());
  recall.request_stop();
  EXPECT_EQ(first.get(), StatusCode::kAborted);
  EXPECT_EQ(second.get(), StatusCode::kAborted);
  EXPECT_EQ(levels(), (std::vector{0, 0}));
}

// The first engine has lost its weights by then.
TEST_F(SleepOfTwo, LevelsAreAlikeBehindCallsOfSeveral) {
  std::stop_source recall;
  auto first = call(2, recall.get_token());
  auto second = call(1, {});
  recall.request_stop();
  EXPECT_EQ(first.get(), StatusCode::kAborted);
  busy().set_free();
  EXPECT_EQ(second.get(), StatusCode::kOk);
  EXPECT_EQ(levels(), (std::vector{2, 2}));
}

// An engine that is awake when it is to wake up, and falls asleep afterwards.
TEST_F(SleepOfTwo, ACallToWakeUpMeanwhileIsHeard) {
  auto sleeps = call(1, {});
  EXPECT_TRUE(sleeps_.wake_up({}).ok());
  busy().set_free();
  EXPECT_EQ(sleeps.get(), StatusCode::kAborted);
  EXPECT_EQ(levels(), (std::vector{0, 0}));
}

}  // namespace
}  // namespace foretoken
