#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "http/message/exchange.h"

namespace foretoken::http {

// The keys that open a server. Only their SHA-256 digests are kept, and they are compared in time
// that does not depend on the key that was sent. Reading is safe from any thread.
class ApiKeys {
 public:
  // Keys of the command line, then those of `file` (one a line; blank lines and lines that begin
  // with # are skipped; "" for no file). Where both give none, the environment variables
  // FORETOKEN_API_KEY and VLLM_API_KEY are looked at. InvalidArgument for an empty key, a key with
  // characters that no header can carry, a file that cannot be read and a file without a key.
  static Result<ApiKeys> read(const std::vector<std::string>& keys, const std::string& file);

  // Without keys a server is open to all.
  bool empty() const { return digests_.empty(); }
  size_t size() const { return digests_.size(); }

  bool accepts(std::string_view key) const;
  // "Authorization: Bearer KEY" (OpenAI), "x-api-key: KEY" (Anthropic) or "api-key: KEY" (Azure).
  bool accepts(const Request& request) const;

 private:
  using Digest = std::array<unsigned char, 32>;
  Status add(const std::string& key, const std::string& from);
  Status add_file(const std::string& file);

  std::vector<Digest> digests_;
};

}  // namespace foretoken::http
