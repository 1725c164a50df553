#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace foretoken {

// What an ETag of the Hub says about the bytes of its file.
enum class DigestKind {
  kNone,     // nothing that can be checked
  kSha256,   // large files: SHA-256 of the content
  kGitSha1,  // ordinary files: the id that git gives the blob
};

// By the shape of the ETag: 64 or 40 hexadecimal digits.
DigestKind digest_kind(const std::string& etag);

// A running digest over a file of `size` bytes. One thread.
class Digest {
 public:
  Digest(DigestKind kind, int64_t size);
  ~Digest();
  Digest(Digest&&) noexcept;
  Digest& operator=(Digest&&) noexcept;

  void update(std::string_view bytes);
  // Lower-case hexadecimal digits; empty for kNone. Ends the digest.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace foretoken
