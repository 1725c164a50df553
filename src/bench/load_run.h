#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "bench/arrivals.h"
#include "bench/backend.h"
#include "bench/draft_counters.h"
#include "bench/request_record.h"
#include "bench/samples/sample.h"
#include "net/client.h"

namespace foretoken::bench {

// How a server is loaded.
struct LoadOptions {
  const Backend* backend = nullptr;
  std::string endpoint;
  std::vector<std::string> models;  // one, or several that the requests are dealt to
  bool models_in_turn = false;      // else by chance
  SharedFields fields;
  net::Headers headers;
  std::string request_id_prefix;  // of X-Request-Id; empty: none is sent
  ArrivalOptions arrivals;
  int max_concurrency = 0;  // 0: no limit
  int num_warmups = 0;
  int ready_timeout_s = 0;            // 0: the first request is not tried before
  double probe_rate = 0;              // short requests/s beside the others, above max_concurrency
  bool profile = false;               // /start_profile before, /stop_profile behind
  std::function<bool()> interrupted;  // asked about 20 times a second; may be empty
  // Whole percent of the work may be shown; called a few times a second; may be empty.
  std::function<void(size_t num_done, size_t num_all)> progress;
  // One line about what begins now; may be empty.
  std::function<void(const std::string& line)> tell;
};

struct RateChange {
  int rps = 0;
  std::string timestamp;  // local time, ISO 8601
};

struct LoadResult {
  std::vector<RequestRecord> records;  // in the order of the samples, those that ended
  double duration = 0;                 // seconds
  size_t num_unfinished = 0;           // given up after an interruption
  std::optional<DraftSummary> drafts;
  std::vector<RateChange> rate_changes;  // of a ramp
  std::vector<RequestRecord> probes;
};

// Sends the samples as the options say and waits for all answers. A request that fails is a record
// with its error; the run goes on. An error of its own where nothing could be measured: a prompt
// that the backend cannot carry, a server that does not get ready, an interruption before the
// measurement. Blocks; one thread.
Result<LoadResult> run_load(net::Client& client, const LoadOptions& options,
                            const std::vector<Sample>& samples);

}  // namespace foretoken::bench
