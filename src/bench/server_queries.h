#pragma once
#include <optional>
#include <string>

#include "base/result.h"
#include "bench/draft_counters.h"
#include "net/client.h"

namespace foretoken::bench {

struct WholeAnswer {
  int status = 0;
  std::string body;
  Status end;
};

// One request without a body, answered within 10 s. Runs the client until nothing is left.
WholeAnswer ask_server(net::Client& client, const std::string& method, const std::string& path,
                       const net::Headers& headers);

// The "id" of the first model of GET /v1/models.
Result<std::string> first_model(net::Client& client, const net::Headers& headers);

// From GET /metrics; none where there are none.
std::optional<DraftCounters> fetch_draft_counters(net::Client& client, const net::Headers& headers);

}  // namespace foretoken::bench
