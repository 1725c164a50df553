#include "http/message/inflater.h"

#include <zlib.h>

#include <algorithm>

#include "http/message/header_text.h"

namespace foretoken::http {
namespace {

constexpr size_t kInflatedBytes = size_t{64} << 10;
// zlib finds out by itself whether a stream has the head of gzip or of zlib.
constexpr int kAnyHead = MAX_WBITS + 32;
constexpr int kNoHead = -MAX_WBITS;

// "deflate" means zlib's format, which some clients leave out. Its first two bytes are a number
// that 31 divides, with 8 in the lower half of the first one.
bool begins_with_head(unsigned char first, unsigned char second) {
  if (first == 0x1F && second == 0x8B) return true;
  return (first & 15) == 8 && (first * 256 + second) % 31 == 0;
}

}  // namespace

struct Inflater::State {
  z_stream stream{};
  std::string head;  // bytes until the format is known
  bool begun = false;
  bool ended = false;

  ~State() {
    if (begun) inflateEnd(&stream);
  }
  Status begin() {
    const auto byte = [this](size_t i) { return static_cast<unsigned char>(head[i]); };
    const int window = begins_with_head(byte(0), byte(1)) ? kAnyHead : kNoHead;
    if (inflateInit2(&stream, window) != Z_OK) {
      return resource_exhausted("there is no memory to unpack the body");
    }
    begun = true;
    return {};
  }
  Status inflate_all(std::string_view bytes, size_t max_bytes, std::string* out);
};

Status Inflater::State::inflate_all(std::string_view bytes, size_t max_bytes, std::string* out) {
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  for (bool full = true; stream.avail_in > 0 || full;) {
    // Another member may follow the end of one.
    if (ended && stream.avail_in == 0) return {};
    if (ended && inflateReset(&stream) != Z_OK) return invalid_argument("the body is broken");
    ended = false;
    const size_t before = out->size();
    out->resize(before + std::min(kInflatedBytes, max_bytes - before + 1));
    stream.next_out = reinterpret_cast<Bytef*>(out->data() + before);
    stream.avail_out = static_cast<uInt>(out->size() - before);
    const int code = inflate(&stream, Z_NO_FLUSH);
    full = stream.avail_out == 0;
    out->resize(out->size() - stream.avail_out);
    if (out->size() > max_bytes) {
      return resource_exhausted("the unpacked body is longer than " + std::to_string(max_bytes) +
                                " bytes");
    }
    ended = code == Z_STREAM_END;
    if (code == Z_BUF_ERROR) return {};  // all is taken
    if (code != Z_OK && !ended) {
      return invalid_argument(
          "the body is not what its Content-Encoding says: it cannot be unpacked");
    }
  }
  return {};
}

Inflater::Inflater() : state_(std::make_unique<State>()) {}
Inflater::~Inflater() = default;
Inflater::Inflater(Inflater&&) noexcept = default;
Inflater& Inflater::operator=(Inflater&&) noexcept = default;

bool Inflater::takes(std::string_view encoding) {
  return same_name(encoding, "gzip") || same_name(encoding, "x-gzip") ||
         same_name(encoding, "deflate");
}

Status Inflater::push(std::string_view bytes, size_t max_bytes, std::string* out) {
  if (state_->begun) return state_->inflate_all(bytes, max_bytes, out);
  state_->head.append(bytes);
  if (state_->head.size() < 2) return {};
  FT_RETURN_IF_ERROR(state_->begin());
  const std::string head = std::move(state_->head);
  return state_->inflate_all(head, max_bytes, out);
}

bool Inflater::ended() const { return state_->ended || (!state_->begun && state_->head.empty()); }

}  // namespace foretoken::http
