#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace foretoken::net {

// Cuts a text/event-stream into its events, whatever the pieces are in which the bytes come. Lines
// end with LF, CR LF or CR; comments, ids and retry times are left out. One thread.
class SseParser {
 public:
  // `name` is the event's type, empty where the stream names none; `data` its data lines, joined by
  // LF. Both live during the call only.
  using OnEvent = std::function<void(std::string_view name, std::string_view data)>;

  // `max_event_bytes`: longest line and longest data of one event.
  explicit SseParser(size_t max_event_bytes = size_t{64} << 20)
      : max_event_bytes_(max_event_bytes) {}

  // Calls `on_event` for every event that `bytes` completes. InvalidArgument when an event grows
  // beyond the limit; the parser is of no use afterwards.
  Status feed(std::string_view bytes, const OnEvent& on_event);

  // At the end of the stream: an event whose blank line is missing counts as complete.
  Status finish(const OnEvent& on_event);

 private:
  Status take_line(std::string_view line, const OnEvent& on_event);
  void dispatch(const OnEvent& on_event);

  const size_t max_event_bytes_;
  std::string line_;  // the beginning of a line that is not complete
  std::string name_;
  std::string data_;
  bool has_data_ = false;
  bool first_line_ = true;
  bool after_cr_ = false;  // an LF that comes next belongs to the line before
};

}  // namespace foretoken::net
