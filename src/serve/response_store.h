#pragma once
#include <list>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <unordered_map>

namespace foretoken {

// A response of /v1/responses as it is kept.
struct StoredResponse {
  nlohmann::ordered_json response;  // as GET returns it
  // The messages of the conversation so far, this response's included, for previous_response_id.
  nlohmann::ordered_json messages;
};

// The latest responses, at most so many and at most 256 MiB of text; older ones are forgotten. Any
// thread.
class ResponseStore {
 public:
  explicit ResponseStore(size_t max_responses) : max_responses_(max_responses) {}

  // Adds a response or replaces the one of this id.
  void put(const std::string& id, StoredResponse response);
  std::optional<StoredResponse> find(const std::string& id) const;
  size_t size() const;

 private:
  struct Entry {
    std::string id;
    StoredResponse stored;
    size_t num_bytes = 0;
  };
  void drop_oldest();

  const size_t max_responses_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // oldest first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_id_;
  size_t num_bytes_ = 0;
};

}  // namespace foretoken
