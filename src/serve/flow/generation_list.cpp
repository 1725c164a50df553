#include "serve/flow/generation_list.h"

namespace foretoken {

void GenerationList::add(const std::string& id, const std::shared_ptr<Generation>& generation) {
  std::lock_guard lock(mutex_);
  entries_.emplace(id, std::pair(generation.get(), std::weak_ptr<Generation>(generation)));
}

void GenerationList::remove(const std::string& id, const Generation* generation) {
  std::lock_guard lock(mutex_);
  const auto [begin, end] = entries_.equal_range(id);
  for (auto entry = begin; entry != end; ++entry) {
    if (entry->second.first != generation) continue;
    entries_.erase(entry);
    return;
  }
}

void GenerationList::created() {
  std::lock_guard lock(mutex_);
  ++num_alive_;
}

void GenerationList::destroyed() {
  std::lock_guard lock(mutex_);
  // Under the lock: who waits may destroy this list as soon as it has it.
  if (--num_alive_ == 0) none_left_.notify_all();
}

void GenerationList::wait_destroyed() {
  std::unique_lock lock(mutex_);
  none_left_.wait(lock, [this] { return num_alive_ == 0; });
}

std::vector<std::shared_ptr<Generation>> GenerationList::find(const std::string& id) const {
  std::vector<std::shared_ptr<Generation>> found;
  std::lock_guard lock(mutex_);
  const auto [begin, end] = entries_.equal_range(id);
  for (auto entry = begin; entry != end; ++entry) {
    if (auto generation = entry->second.second.lock()) found.push_back(std::move(generation));
  }
  return found;
}

std::vector<std::shared_ptr<Generation>> GenerationList::all() const {
  std::vector<std::shared_ptr<Generation>> found;
  std::lock_guard lock(mutex_);
  for (const auto& [id, entry] : entries_) {
    if (auto generation = entry.second.lock()) found.push_back(std::move(generation));
  }
  return found;
}

}  // namespace foretoken
