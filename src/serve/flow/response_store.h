#pragma once
#include <list>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <unordered_map>

#include "serve/flow/event_log.h"

namespace foretoken {

// A response of /v1/responses as it is kept.
struct StoredResponse {
  nlohmann::ordered_json response;  // as GET returns it
  // The messages of the conversation so far, this response's included, for previous_response_id.
  nlohmann::ordered_json messages;
  bool running = false;  // in the background: `finish` will bring its end
  // The items that it answers, those of the responses before it and their outputs included; each
  // has an id.
  nlohmann::ordered_json input = nlohmann::ordered_json::array();
  std::shared_ptr<EventLog> events = nullptr;  // of one that streams in the background
};

// The latest responses, at most so many and at most so many bytes of text; the oldest are
// forgotten, those that run after all others. Any thread.
class ResponseStore {
 public:
  explicit ResponseStore(size_t max_responses, size_t max_bytes = size_t{256} << 20)
      : max_responses_(max_responses), max_bytes_(max_bytes) {}

  // Adds a response or replaces the one of this id.
  void put(const std::string& id, StoredResponse response);
  // The end of one that runs; nothing where it was erased or forgotten meanwhile. One that was
  // cancelled stays "cancelled".
  void finish(const std::string& id, StoredResponse response);
  // Makes the status of one that runs "cancelled"; false where none runs under this id.
  bool cancel(const std::string& id);
  // False where there is none.
  bool erase(const std::string& id);
  // A log for one that streams in the background. All that run hold a bounded sum; those that ended
  // count as text.
  std::shared_ptr<EventLog> make_events() const;
  std::optional<StoredResponse> find(const std::string& id) const;
  // A message, call or thought ("msg_...", "fc_...", "rs_...") of the output of a response.
  std::optional<nlohmann::ordered_json> find_item(const std::string& id) const;
  size_t size() const;

 private:
  struct Entry {
    std::string id;
    StoredResponse stored;
    size_t num_bytes = 0;
  };
  using Entries = std::list<Entry>;

  // With the lock held.
  void put_locked(const std::string& id, StoredResponse response, size_t num_bytes);
  void index_items(const Entry& entry, bool add);
  void drop(Entries::iterator entry);
  void drop_oldest();

  const size_t max_responses_;
  const size_t max_bytes_;
  const std::shared_ptr<EventBudget> budget_ = std::make_shared<EventBudget>();
  mutable std::mutex mutex_;
  Entries entries_;  // oldest first
  std::unordered_map<std::string, Entries::iterator> by_id_;
  std::unordered_map<std::string, std::string> response_of_item_;  // ids of both
  size_t num_bytes_ = 0;
};

}  // namespace foretoken
