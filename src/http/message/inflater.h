#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace foretoken::http {

// Unpacks a body of Content-Encoding "gzip" or "deflate" as its bytes come. One thread.
class Inflater {
 public:
  Inflater();
  ~Inflater();
  Inflater(Inflater&&) noexcept;
  Inflater& operator=(Inflater&&) noexcept;

  // Whether bodies of this encoding, its name in any case, can be unpacked.
  static bool takes(std::string_view encoding);

  // Appends what `bytes` hold to `*out`. ResourceExhausted as soon as that is longer than
  // `max_bytes`, InvalidArgument for bytes that are broken or follow the end.
  Status push(std::string_view bytes, size_t max_bytes, std::string* out);
  // Whether all that was begun is whole.
  bool ended() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace foretoken::http
