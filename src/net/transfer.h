#pragma once
#include <curl/curl.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "net/client.h"

namespace foretoken::net {

struct FreeEasy {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using HeaderList = std::unique_ptr<curl_slist, FreeList>;

// Appends a line to the list.
void add_line(HeaderList& list, const std::string& line);

// libcurl's global state, once for the process.
void start_curl();

// One request of a Client: its handle of libcurl, and the handlers that its callbacks call.
class Transfer {
 public:
  // `address`: the whole one. `is_stopping` and `options` live as long as the transfer.
  Transfer(const ClientOptions& options, std::string address, ClientRequest request,
           ClientHandlers handlers, const bool& is_stopping);

  CURL* handle() const { return handle_.get(); }
  ClientHandlers& handlers() { return handlers_; }
  // New connections that it took.
  size_t num_connections() const;

  // What libcurl's result says, as ClientHandlers::on_end wants it.
  Status end_of(CURLcode code) const;

 private:
  static size_t on_header(char* data, size_t size, size_t count, void* self);
  static size_t on_data(char* data, size_t size, size_t count, void* self);

  void set_request();
  void set_tls();
  bool take_line(std::string_view line);
  Status broken(CURLcode code) const;
  Status too_late() const;
  std::chrono::milliseconds timeout() const;

  const ClientOptions& options_;
  const std::string address_;
  const std::string origin_;
  ClientRequest request_;
  ClientHandlers handlers_;
  const bool& is_stopping_;
  std::unique_ptr<CURL, FreeEasy> handle_;
  HeaderList sent_;
  int status_ = 0;
  Headers received_;
  size_t head_bytes_ = 0;
  char message_[CURL_ERROR_SIZE] = "";
};

}  // namespace foretoken::net
