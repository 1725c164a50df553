#include "serve/flow/conversation_store.h"

#include <algorithm>
#include <set>
#include <utility>

#include "serve/fields/request_body.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

size_t num_bytes_of_items(const std::vector<json>& items) {
  size_t num_bytes = 0;
  for (const json& item : items) num_bytes += json_text(item).size();
  return num_bytes;
}

// Lists are paged by ids, so that each is there once.
void give_own_ids(const std::vector<json>& before, std::vector<json>* items) {
  std::set<std::string> taken;
  for (const json& item : before) taken.insert(item.at("id").get<std::string>());
  for (json& item : *items) {
    const std::string wanted = item.at("id").get<std::string>();
    std::string id = wanted;
    for (int number = 2; taken.contains(id); ++number) id = wanted + "_" + std::to_string(number);
    taken.insert(id);
    item["id"] = std::move(id);
  }
}

}  // namespace

void ConversationStore::create(Conversation conversation) {
  give_own_ids({}, &conversation.items);
  const std::lock_guard lock(mutex_);
  const std::string id = conversation.id;
  const size_t num_bytes =
      num_bytes_of_items(conversation.items) + json_text(conversation.metadata).size();
  entries_.push_back({std::move(conversation), 0});
  by_id_[id] = std::prev(entries_.end());
  resize(entries_.back(), num_bytes);
}

std::optional<Conversation> ConversationStore::find(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const Entry* entry = use(id);
  if (entry == nullptr) return std::nullopt;
  return entry->conversation;
}

std::optional<std::vector<json>> ConversationStore::add(const std::string& id,
                                                        std::vector<json> items) {
  const std::lock_guard lock(mutex_);
  Entry* entry = use(id);
  if (entry == nullptr) return std::nullopt;
  std::vector<json>& all = entry->conversation.items;
  give_own_ids(all, &items);
  all.insert(all.end(), items.begin(), items.end());
  resize(*entry, entry->num_bytes + num_bytes_of_items(items));
  return items;
}

bool ConversationStore::set_metadata(const std::string& id, json metadata) {
  const std::lock_guard lock(mutex_);
  Entry* entry = use(id);
  if (entry == nullptr) return false;
  json& kept = entry->conversation.metadata;
  const size_t others = entry->num_bytes - json_text(kept).size();
  kept = std::move(metadata);
  resize(*entry, others + json_text(kept).size());
  return true;
}

bool ConversationStore::erase(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return false;
  drop(found->second);
  return true;
}

bool ConversationStore::erase_item(const std::string& id, const std::string& item_id) {
  const std::lock_guard lock(mutex_);
  Entry* entry = use(id);
  if (entry == nullptr) return false;
  std::vector<json>& items = entry->conversation.items;
  const auto at =
      std::ranges::find_if(items, [&](const json& item) { return item.at("id") == item_id; });
  if (at == items.end()) return false;
  resize(*entry, entry->num_bytes - json_text(*at).size());
  items.erase(at);
  return true;
}

size_t ConversationStore::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

ConversationStore::Entry* ConversationStore::use(const std::string& id) {
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return nullptr;
  entries_.splice(entries_.end(), entries_, found->second);
  return &*found->second;
}

void ConversationStore::resize(Entry& entry, size_t num_bytes) {
  num_bytes_ += num_bytes - entry.num_bytes;
  entry.num_bytes = num_bytes;
  while (!entries_.empty() && (entries_.size() > max_conversations_ || num_bytes_ > max_bytes_)) {
    drop(entries_.begin());
  }
}

void ConversationStore::drop(Entries::iterator entry) {
  num_bytes_ -= entry->num_bytes;
  by_id_.erase(entry->conversation.id);
  entries_.erase(entry);
}

}  // namespace foretoken
