#include "serve/flow/response_store.h"

#include <algorithm>

#include "serve/fields/request_body.h"

namespace foretoken {
namespace {

constexpr const char* kCancelled = "cancelled";

size_t num_bytes_of(const StoredResponse& response) {
  return json_text(response.response).size() + json_text(response.messages).size() +
         json_text(response.input).size();
}

std::string item_id(const nlohmann::ordered_json& item) {
  const auto found = item.is_object() ? item.find("id") : item.end();
  const bool named = item.is_object() && found != item.end() && found->is_string();
  return named ? found->get<std::string>() : std::string();
}

}  // namespace

void ResponseStore::put(const std::string& id, StoredResponse response) {
  const size_t num_bytes = num_bytes_of(response);
  std::lock_guard lock(mutex_);
  put_locked(id, std::move(response), num_bytes);
}

void ResponseStore::finish(const std::string& id, StoredResponse response) {
  size_t num_bytes = num_bytes_of(response);
  std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  if (found == by_id_.end() || !found->second->stored.running) return;
  response.events = found->second->stored.events;
  if (response.events != nullptr) num_bytes += response.events->num_bytes();
  if (found->second->stored.response["status"] == kCancelled) {
    response.response["status"] = kCancelled;
  }
  put_locked(id, std::move(response), num_bytes);
}

std::shared_ptr<EventLog> ResponseStore::make_events() const {
  return std::make_shared<EventLog>(EventLog::kMaxBytes, budget_);
}

bool ResponseStore::cancel(const std::string& id) {
  std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  if (found == by_id_.end() || !found->second->stored.running) return false;
  found->second->stored.response["status"] = kCancelled;
  return true;
}

bool ResponseStore::erase(const std::string& id) {
  std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return false;
  drop(found->second);
  return true;
}

void ResponseStore::put_locked(const std::string& id, StoredResponse response, size_t num_bytes) {
  const auto found = by_id_.find(id);
  if (found != by_id_.end()) {
    index_items(*found->second, false);
    num_bytes_ += num_bytes - found->second->num_bytes;
    found->second->stored = std::move(response);
    found->second->num_bytes = num_bytes;
  } else {
    entries_.push_back({id, std::move(response), num_bytes});
    by_id_[id] = std::prev(entries_.end());
    num_bytes_ += num_bytes;
  }
  index_items(*by_id_[id], true);
  while (!entries_.empty() && (entries_.size() > max_responses_ || num_bytes_ > max_bytes_)) {
    drop_oldest();
  }
}

void ResponseStore::index_items(const Entry& entry, bool add) {
  const auto output = entry.stored.response.find("output");
  if (output == entry.stored.response.end()) return;
  for (const auto& item : *output) {
    const std::string id = item_id(item);
    if (id.empty()) continue;
    if (add) {
      response_of_item_[id] = entry.id;
    } else {
      response_of_item_.erase(id);
    }
  }
}

void ResponseStore::drop(Entries::iterator entry) {
  index_items(*entry, false);
  num_bytes_ -= entry->num_bytes;
  by_id_.erase(entry->id);
  entries_.erase(entry);
}

void ResponseStore::drop_oldest() {
  const auto ended = std::find_if(entries_.begin(), entries_.end(),
                                  [](const Entry& entry) { return !entry.stored.running; });
  drop(ended == entries_.end() ? entries_.begin() : ended);
}

std::optional<StoredResponse> ResponseStore::find(const std::string& id) const {
  std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return std::nullopt;
  return found->second->stored;
}

std::optional<nlohmann::ordered_json> ResponseStore::find_item(const std::string& id) const {
  std::lock_guard lock(mutex_);
  const auto response = response_of_item_.find(id);
  if (response == response_of_item_.end()) return std::nullopt;
  const auto& output = by_id_.at(response->second)->stored.response.at("output");
  for (const auto& item : output) {
    if (item_id(item) == id) return item;
  }
  return std::nullopt;
}

size_t ResponseStore::size() const {
  std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace foretoken
