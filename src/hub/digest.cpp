#include "hub/digest.h"

#include <openssl/evp.h>

#include "base/check.h"
#include "hub/repo_id.h"

namespace foretoken {

struct Digest::State {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context{EVP_MD_CTX_new(),
                                                                  EVP_MD_CTX_free};
};

DigestKind digest_kind(const std::string& etag) {
  if (is_hex(etag, 64)) return DigestKind::kSha256;
  if (is_hex(etag, 40)) return DigestKind::kGitSha1;
  return DigestKind::kNone;
}

Digest::Digest(DigestKind kind, int64_t size) {
  if (kind == DigestKind::kNone) return;
  state_ = std::make_unique<State>();
  const EVP_MD* type = kind == DigestKind::kSha256 ? EVP_sha256() : EVP_sha1();
  FT_CHECK(EVP_DigestInit_ex(state_->context.get(), type, nullptr) == 1);
  if (kind == DigestKind::kSha256) return;
  const std::string header = "blob " + std::to_string(size);
  update(std::string_view(header.c_str(), header.size() + 1));
}

Digest::~Digest() = default;
Digest::Digest(Digest&&) noexcept = default;
Digest& Digest::operator=(Digest&&) noexcept = default;

void Digest::update(std::string_view bytes) {
  if (state_ == nullptr) return;
  FT_CHECK(EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()) == 1);
}

std::string Digest::finish() {
  if (state_ == nullptr) return "";
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned int num_bytes = 0;
  FT_CHECK(EVP_DigestFinal_ex(state_->context.get(), bytes, &num_bytes) == 1);
  state_.reset();
  std::string hex;
  for (unsigned int i = 0; i < num_bytes; ++i) {
    hex += "0123456789abcdef"[bytes[i] >> 4];
    hex += "0123456789abcdef"[bytes[i] & 15];
  }
  return hex;
}

}  // namespace foretoken
