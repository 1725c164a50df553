#include "serve/response_store.h"

#include "serve/request_body.h"

namespace foretoken {
namespace {

constexpr size_t kMaxBytes = size_t{256} << 20;

}  // namespace

void ResponseStore::put(const std::string& id, StoredResponse response) {
  const size_t num_bytes =
      json_text(response.response).size() + json_text(response.messages).size();
  std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  if (found != by_id_.end()) {
    num_bytes_ += num_bytes - found->second->num_bytes;
    found->second->stored = std::move(response);
    found->second->num_bytes = num_bytes;
  } else {
    entries_.push_back({id, std::move(response), num_bytes});
    by_id_[id] = std::prev(entries_.end());
    num_bytes_ += num_bytes;
  }
  while (!entries_.empty() && (entries_.size() > max_responses_ || num_bytes_ > kMaxBytes)) {
    drop_oldest();
  }
}

void ResponseStore::drop_oldest() {
  num_bytes_ -= entries_.front().num_bytes;
  by_id_.erase(entries_.front().id);
  entries_.pop_front();
}

std::optional<StoredResponse> ResponseStore::find(const std::string& id) const {
  std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return std::nullopt;
  return found->second->stored;
}

size_t ResponseStore::size() const {
  std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace foretoken
