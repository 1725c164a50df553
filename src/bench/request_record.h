#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace foretoken::bench {

// What was measured of one request, in seconds. The definitions are those of vLLM's benchmark.
struct RequestRecord {
  bool success = false;
  std::string error;
  std::string text;
  double start_time = 0;     // when it was sent, since the start of the measurement
  double queue_time = 0;     // between its arrival and start_time: it waited for --max-concurrency
  double ttft = 0;           // to the first chunk with output
  std::vector<double> itls;  // gaps between chunks with output, which may hold several tokens
  double latency = 0;        // to the last chunk with output
  int64_t prompt_len = 0;    // tokens, by the server where it tells
  // By the server's usage; where it tells none, by the tokenizer, and without one the chunks.
  int64_t output_tokens = 0;
  bool counted_by_server = false;
  std::optional<double> server_queue_time;
  std::optional<double> server_ttft;

  // (latency - ttft) / (output_tokens - 1), or 0 for up to one token.
  double tpot() const {
    return output_tokens > 1 ? (latency - ttft) / static_cast<double>(output_tokens - 1) : 0;
  }
  size_t num_chunks() const { return ttft > 0 ? itls.size() + 1 : 0; }
};

}  // namespace foretoken::bench
