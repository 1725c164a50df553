#pragma once
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace foretoken {

class Generation;

// The generations that run, by the id of their answer. Several may have one id: clients choose
// them. Any thread.
class GenerationList {
 public:
  void add(const std::string& id, const std::shared_ptr<Generation>& generation);
  void remove(const std::string& id, const Generation* generation);
  // Told by every generation of a server, which the engine and the threads of an answer may hold
  // longer than it stands in the list.
  void created();
  void destroyed();
  // Until every one that was created is destroyed.
  void wait_destroyed();
  // All with this id.
  std::vector<std::shared_ptr<Generation>> find(const std::string& id) const;
  std::vector<std::shared_ptr<Generation>> all() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable none_left_;
  size_t num_alive_ = 0;
  std::multimap<std::string, std::pair<const Generation*, std::weak_ptr<Generation>>> entries_;
};

}  // namespace foretoken
