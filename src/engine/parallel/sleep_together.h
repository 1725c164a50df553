#pragma once
#include <foretoken/engine.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

namespace foretoken {

// Puts several engines to sleep and wakes them up, all of them or none. Calls may overlap, of any
// threads: each asks all engines, so that one that ends requests does so for those that wait, and
// when the last of them returns the engines' levels are alike, or as they were when the first
// began.
class SleepTogether {
 public:
  // `engines` outlive it.
  explicit SleepTogether(const std::vector<std::unique_ptr<Engine>>& engines) : engines_(engines) {}

  // As of Engine::sleep and Engine::wake_up; errors name the engine. The first failure recalls the
  // call at the others.
  Status sleep(int level, bool ends_requests, int64_t* bytes, const std::stop_token& recall);
  Status wake_up(const std::vector<std::string>& tags);

 private:
  void begin_call();
  Status end_call(Status own);
  Status settle(const std::vector<int>& before, const Status& own);
  Status go_back(const std::vector<int>& before, const Status& why);
  std::vector<int> levels() const;
  Status ask_all(const std::function<Status(size_t)>& ask) const;

  const std::vector<std::unique_ptr<Engine>>& engines_;
  std::mutex mutex_;
  int num_calls_ = 0;        // that go on
  uint64_t num_begun_ = 0;   // in all
  std::vector<int> before_;  // levels when the first of those that go on began
};

}  // namespace foretoken
