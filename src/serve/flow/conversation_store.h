#pragma once
#include <cstdint>
#include <list>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace foretoken {

// A conversation of /v1/conversations as it is kept.
struct Conversation {
  std::string id;
  int64_t created = 0;  // seconds since 1970
  nlohmann::ordered_json metadata = nlohmann::ordered_json::object();
  std::vector<nlohmann::ordered_json> items;  // oldest first, each with an id of its own
};

// Conversations by their ids, at most so many and at most so many bytes of text; those that nobody
// asked for the longest are forgotten. Any thread.
class ConversationStore {
 public:
  explicit ConversationStore(size_t max_conversations, size_t max_bytes = size_t{256} << 20)
      : max_conversations_(max_conversations), max_bytes_(max_bytes) {}

  // A new one, whose id no other has. Its items are as `add` takes them.
  void create(Conversation conversation);
  std::optional<Conversation> find(const std::string& id);
  // Items, each with an id, behind those that are there; one whose id is taken gets another.
  // Returns them as they are kept; nothing where there is no such conversation.
  std::optional<std::vector<nlohmann::ordered_json>> add(const std::string& id,
                                                         std::vector<nlohmann::ordered_json> items);
  // These return false where there is none.
  bool set_metadata(const std::string& id, nlohmann::ordered_json metadata);
  bool erase(const std::string& id);
  bool erase_item(const std::string& id, const std::string& item_id);
  size_t size() const;

 private:
  struct Entry {
    Conversation conversation;
    size_t num_bytes = 0;
  };
  using Entries = std::list<Entry>;

  // With the lock held. The entry is the last one to be forgotten from now on; null: there is none.
  Entry* use(const std::string& id);
  // `entry` holds so many bytes from now on; it may be gone behind this.
  void resize(Entry& entry, size_t num_bytes);
  void drop(Entries::iterator entry);

  const size_t max_conversations_;
  const size_t max_bytes_;
  mutable std::mutex mutex_;
  Entries entries_;  // the least recently used first
  std::unordered_map<std::string, Entries::iterator> by_id_;
  size_t num_bytes_ = 0;
};

}  // namespace foretoken
