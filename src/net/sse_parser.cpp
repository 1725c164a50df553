#include "net/sse_parser.h"

namespace foretoken::net {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

Status SseParser::feed(std::string_view bytes, const OnEvent& on_event) {
  if (after_cr_ && !bytes.empty()) {
    if (bytes.front() == '\n') bytes.remove_prefix(1);
    after_cr_ = false;
  }
  while (!bytes.empty()) {
    const size_t end = bytes.find_first_of("\r\n");
    if (line_.size() + std::min(end, bytes.size()) > max_event_bytes_) {
      return invalid_argument("an event of the stream is longer than " +
                              std::to_string(max_event_bytes_) + " bytes");
    }
    line_.append(bytes.substr(0, end));
    if (end == std::string_view::npos) return {};
    const bool cr = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    if (cr && !bytes.empty() && bytes.front() == '\n') bytes.remove_prefix(1);
    after_cr_ = cr && bytes.empty();
    const std::string line = std::move(line_);
    line_.clear();
    FT_RETURN_IF_ERROR(take_line(line, on_event));
  }
  return {};
}

Status SseParser::finish(const OnEvent& on_event) {
  const std::string line = std::move(line_);
  line_.clear();
  if (!line.empty()) FT_RETURN_IF_ERROR(take_line(line, on_event));
  dispatch(on_event);
  return {};
}

Status SseParser::take_line(std::string_view line, const OnEvent& on_event) {
  if (first_line_ && line.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    line.remove_prefix(kByteOrderMark.size());
  }
  first_line_ = false;
  if (line.empty()) {
    dispatch(on_event);
    return {};
  }
  const size_t colon = std::min(line.find(':'), line.size());
  const std::string_view field = line.substr(0, colon);
  std::string_view value = line.substr(std::min(colon + 1, line.size()));
  if (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  if (field == "event") name_ = value;
  if (field != "data") return {};
  if (data_.size() + value.size() > max_event_bytes_) {
    return invalid_argument("an event of the stream is longer than " +
                            std::to_string(max_event_bytes_) + " bytes");
  }
  if (has_data_) data_ += '\n';
  data_ += value;
  has_data_ = true;
  return {};
}

void SseParser::dispatch(const OnEvent& on_event) {
  if (has_data_) on_event(name_, data_);
  name_.clear();
  data_.clear();
  has_data_ = false;
}

}  // namespace foretoken::net
