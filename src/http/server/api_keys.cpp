#include "http/server/api_keys.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "base/files/text_file.h"
#include "http/message/header_text.h"

namespace foretoken::http {
namespace {

constexpr const char* kKeyHeaders[] = {"x-api-key", "api-key"};

// As RFC 7235 writes it: the scheme in any case, one or more spaces, the key.
std::string_view bearer_of(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer";
  if (!same_name(authorization.substr(0, kScheme.size()), kScheme)) return {};
  authorization.remove_prefix(kScheme.size());
  if (authorization.empty() || authorization.front() != ' ') return {};
  return trimmed(authorization);
}

}  // namespace

Status ApiKeys::add(const std::string& key, const std::string& from) {
  if (key.empty()) return invalid_argument(from + ": an API key is empty");
  for (const unsigned char c : key) {
    if (c <= ' ' || c >= 127) {
      return invalid_argument(from +
                              ": an API key has a space, a control character or a character beyond "
                              "ASCII, which clients cannot send in a header");
    }
  }
  Digest digest;
  SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), digest.data());
  if (std::find(digests_.begin(), digests_.end(), digest) == digests_.end()) {
    digests_.push_back(digest);
  }
  return {};
}

Status ApiKeys::add_file(const std::string& file) {
  std::ifstream in(file);
  if (!in) return invalid_argument("the API key file " + file + " cannot be read");
  const size_t num_before = digests_.size();
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (number == 1) {
      FT_ASSIGN_OR_RETURN(line, plain_text(std::move(line), file));
    }
    const std::string_view key = trimmed(line);
    if (key.empty() || key.front() == '#') continue;
    FT_RETURN_IF_ERROR(add(std::string(key), file + ", line " + std::to_string(number)));
  }
  if (in.bad()) return invalid_argument("the API key file " + file + " cannot be read");
  if (digests_.size() == num_before && num_before == 0) {
    return invalid_argument("the API key file " + file + " has no key; write one a line");
  }
  return {};
}

Result<ApiKeys> ApiKeys::read(const std::vector<std::string>& keys, const std::string& file) {
  ApiKeys read;
  for (const std::string& key : keys) FT_RETURN_IF_ERROR(read.add(key, "the command line"));
  if (!file.empty()) FT_RETURN_IF_ERROR(read.add_file(file));
  if (!read.empty()) return read;
  for (const char* name : {"FORETOKEN_API_KEY", "VLLM_API_KEY"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != 0) FT_RETURN_IF_ERROR(read.add(value, name));
  }
  return read;
}

bool ApiKeys::accepts(std::string_view key) const {
  Digest digest;
  SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), digest.data());
  bool found = false;
  // All are looked at, so that the time does not tell which one matched.
  for (const Digest& known : digests_) {
    found |= CRYPTO_memcmp(known.data(), digest.data(), digest.size()) == 0;
  }
  return found;
}

bool ApiKeys::accepts(const Request& request) const {
  const std::string_view bearer = bearer_of(request.header("authorization"));
  if (!bearer.empty() && accepts(bearer)) return true;
  return std::ranges::any_of(kKeyHeaders, [&](const char* name) {
    const std::string_view key = request.header(name);
    return !key.empty() && accepts(key);
  });
}

}  // namespace foretoken::http
