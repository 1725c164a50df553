#include "http/message/inflater.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>

namespace foretoken::http {
namespace {

constexpr int kGzip = MAX_WBITS + 16;
constexpr int kZlib = MAX_WBITS;
constexpr int kRaw = -MAX_WBITS;

std::string packed(const std::string& text, int window) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

Status unpack(Inflater& inflater, const std::string& bytes, size_t step, size_t max_bytes,
              std::string* out) {
  for (size_t at = 0; at < bytes.size(); at += step) {
    const Status status = inflater.push(std::string_view(bytes).substr(at, step), max_bytes, out);
    if (!status.ok()) return status;
  }
  return {};
}

const std::string kText = [] {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += std::to_string(i * 7919) + ",";
  return text;
}();

TEST(HttpInflater, UnpacksEveryFormatInAnyPieces) {
  for (const int window : {kGzip, kZlib, kRaw}) {
    const std::string bytes = packed(kText, window);
    for (const size_t step : {size_t{1}, size_t{7}, size_t{4096}, bytes.size()}) {
      Inflater inflater;
      std::string out;
      ASSERT_TRUE(unpack(inflater, bytes, step, kText.size(), &out).ok()) << window << " " << step;
      EXPECT_EQ(out, kText) << window << " " << step;
      EXPECT_TRUE(inflater.ended());
    }
  }
}

TEST(HttpInflater, MembersFollowEachOther) {
  Inflater inflater;
  std::string out;
  const std::string bytes = packed("one,", kGzip) + packed("two", kGzip);
  ASSERT_TRUE(unpack(inflater, bytes, 5, 100, &out).ok());
  EXPECT_EQ(out, "one,two");
  EXPECT_TRUE(inflater.ended());
}

TEST(HttpInflater, StopsABombAtItsBound) {
  const std::string bytes = packed(std::string(size_t{64} << 20, '0'), kGzip);
  Inflater inflater;
  std::string out;
  const Status status = inflater.push(bytes, 100'000, &out);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_LE(out.size(), 100'001u);
}

TEST(HttpInflater, SaysWhatIsBrokenOrCutShort) {
  std::string bytes = packed(kText, kGzip);
  std::string out;
  Inflater cut;
  ASSERT_TRUE(cut.push(bytes.substr(0, bytes.size() - 3), kText.size(), &out).ok());
  EXPECT_FALSE(cut.ended());
  bytes[bytes.size() / 2] ^= 0x55;
  Inflater broken;
  out.clear();
  const Status status = broken.push(bytes, kText.size() * 2, &out);
  EXPECT_TRUE(!status.ok() || !broken.ended() || out != kText);
  Inflater plain;
  out.clear();
  EXPECT_EQ(plain.push("{\"messages\": []}", 100, &out).code(), StatusCode::kInvalidArgument);
}

TEST(HttpInflater, KnowsItsEncodings) {
  EXPECT_TRUE(Inflater::takes("GZip"));
  EXPECT_TRUE(Inflater::takes("deflate"));
  EXPECT_FALSE(Inflater::takes("zstd"));
  EXPECT_FALSE(Inflater::takes("br"));
  EXPECT_TRUE(Inflater().ended());
}

}  // namespace
}  // namespace foretoken::http
