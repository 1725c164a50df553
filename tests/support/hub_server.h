#pragma once
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace foretoken::test {

struct HubServerRequest {
  std::string method;
  std::string path;                            // with the query
  std::map<std::string, std::string> headers;  // names in lower case
  bool cdn = false;                            // came to the second host
};

struct HubServerAnswer {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers;  // beside Content-Length
  std::string body;
  int64_t content_length = -1;  // -1: that of the body; -2: none is sent
  int64_t cut_after = -1;       // the connection is closed after so many bytes of the body
  bool hang = false;            // instead of closing, nothing more comes until the server stops
  bool endless = false;         // the body is sent over and over
};

struct HubServerRepo {
  std::string commit;
  std::map<std::string, std::string> files;
  std::set<std::string> large;  // of the files: kept on the CDN host, named by their SHA-256
  std::set<std::string> revisions = {"main"};
  bool lists_blobs = true;  // false: the listing holds names only, as mirrors do
};

// A Hugging Face Hub on 127.0.0.1 with its CDN on 127.0.0.2: listing, HEAD and GET with ranges and
// redirects. Thread-safe; ends with its object.
class HubServer {
 public:
  HubServer();
  ~HubServer();
  HubServer(const HubServer&) = delete;
  HubServer& operator=(const HubServer&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(ports_[0]); }
  std::string cdn_url() const { return "http://127.0.0.2:" + std::to_string(ports_[1]); }

  void set_repo(const std::string& name, const HubServerRepo& repo);
  // Asked before the repositories; nullopt: they answer.
  using Intercept = std::function<std::optional<HubServerAnswer>(const HubServerRequest&)>;
  void set_intercept(Intercept intercept);

  std::vector<HubServerRequest> requests() const;
  void forget_requests();
  // Requests of this method ("": any) whose path holds `part`.
  int count(const std::string& method, const std::string& part) const;
  // Requests for contents, HEAD and those of the CDN included.
  int count_files() const { return count("", "/resolve/"); }

  // The ETag of a file of a repository.
  static std::string etag(const HubServerRepo& repo, const std::string& file);

 private:
  void accept_loop(int socket, bool cdn);
  void serve(int socket, bool cdn);
  void send_answer(int socket, const HubServerAnswer& answer, bool head);
  HubServerAnswer answer(const HubServerRequest& request) const;
  HubServerAnswer listing(const std::string& path) const;
  HubServerAnswer file(const HubServerRequest& request) const;
  HubServerAnswer blob(const HubServerRequest& request) const;

  int sockets_[2];
  int ports_[2];
  std::atomic<bool> stop_{false};
  mutable std::mutex mutex_;
  std::map<std::string, HubServerRepo> repos_;
  Intercept intercept_;
  std::vector<HubServerRequest> requests_;
  std::vector<std::thread> connections_;
  std::thread acceptors_[2];
};

}  // namespace foretoken::test
