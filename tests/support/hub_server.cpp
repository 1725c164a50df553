#include "support/hub_server.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/check.h"
#include "hub/digest.h"

namespace foretoken::test {
namespace {

std::string digest(DigestKind kind, const std::string& content) {
  Digest running(kind, static_cast<int64_t>(content.size()));
  running.update(content);
  return running.finish();
}

int listen_on(const char* host, int* port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  inet_pton(AF_INET, host, &address.sin_addr);
  auto* plain = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof(address);
  FT_CHECK(bind(socket, plain, length) == 0 && listen(socket, 64) == 0);
  FT_CHECK(getsockname(socket, plain, &length) == 0);
  *port = ntohs(address.sin_port);
  return socket;
}

HubServerAnswer error_answer(int status, const char* code) {
  HubServerAnswer answer{.status = status, .headers = {}, .body = "{\"error\": \"no\"}"};
  if (*code != '\0') answer.headers.emplace_back("X-Error-Code", code);
  return answer;
}

std::string unquote(const std::string& text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      plain += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

HubServerRequest parse_request(const std::string& text, bool cdn) {
  HubServerRequest request;
  request.cdn = cdn;
  std::istringstream lines(text);
  lines >> request.method >> request.path;
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line) && line != "\r") {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::string name = line.substr(0, colon);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    request.headers[name] = line.substr(colon + 2, line.size() - colon - 3);
  }
  return request;
}

bool send_all(int socket, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t count = send(socket, data, size, MSG_NOSIGNAL);
    if (count <= 0) return false;
    data += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

}  // namespace

HubServer::HubServer() {
  sockets_[0] = listen_on("127.0.0.1", &ports_[0]);
  sockets_[1] = listen_on("127.0.0.2", &ports_[1]);
  for (int i = 0; i < 2; ++i) {
    acceptors_[i] = std::thread([this, i] { accept_loop(sockets_[i], i == 1); });
  }
}

HubServer::~HubServer() {
  stop_.store(true);
  for (int i = 0; i < 2; ++i) {
    acceptors_[i].join();
    close(sockets_[i]);
  }
  for (std::thread& connection : connections_) connection.join();
}

void HubServer::set_repo(const std::string& name, const HubServerRepo& repo) {
  std::lock_guard lock(mutex_);
  repos_[name] = repo;
}

void HubServer::set_intercept(Intercept intercept) {
  std::lock_guard lock(mutex_);
  intercept_ = std::move(intercept);
}

std::vector<HubServerRequest> HubServer::requests() const {
  std::lock_guard lock(mutex_);
  return requests_;
}

void HubServer::forget_requests() {
  std::lock_guard lock(mutex_);
  requests_.clear();
}

int HubServer::count(const std::string& method, const std::string& part) const {
  const std::vector<HubServerRequest> all = requests();
  return static_cast<int>(
      std::count_if(all.begin(), all.end(), [&](const HubServerRequest& request) {
        return (method.empty() || request.method == method) &&
               request.path.find(part) != std::string::npos;
      }));
}

std::string HubServer::etag(const HubServerRepo& repo, const std::string& file) {
  const bool large = repo.large.count(file) > 0;
  return digest(large ? DigestKind::kSha256 : DigestKind::kGitSha1, repo.files.at(file));
}

void HubServer::accept_loop(int socket, bool cdn) {
  while (!stop_.load()) {
    pollfd polled = {socket, POLLIN, 0};
    if (poll(&polled, 1, 20) <= 0) continue;
    const int connection = accept4(socket, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    std::lock_guard lock(mutex_);
    connections_.emplace_back([this, connection, cdn] { serve(connection, cdn); });
  }
}

void HubServer::serve(int socket, bool cdn) {
  std::string text;
  while (!stop_.load() && text.find("\r\n\r\n") == std::string::npos) {
    pollfd polled = {socket, POLLIN, 0};
    if (poll(&polled, 1, 20) <= 0) continue;
    char buffer[4096];
    const ssize_t count = recv(socket, buffer, sizeof(buffer), 0);
    if (count <= 0) break;
    text.append(buffer, static_cast<size_t>(count));
  }
  if (text.find("\r\n\r\n") != std::string::npos) {
    const HubServerRequest request = parse_request(text, cdn);
    Intercept intercept;
    {
      std::lock_guard lock(mutex_);
      requests_.push_back(request);
      intercept = intercept_;
    }
    std::optional<HubServerAnswer> special = intercept ? intercept(request) : std::nullopt;
    send_answer(socket, special ? *special : answer(request), request.method == "HEAD");
  }
  close(socket);
}

void HubServer::send_answer(int socket, const HubServerAnswer& answer, bool head) {
  std::string text = "HTTP/1.1 " + std::to_string(answer.status) + " Answer\r\n";
  for (const auto& [name, value] : answer.headers) text += name + ": " + value + "\r\n";
  const auto size = static_cast<int64_t>(answer.body.size());
  const int64_t announced = answer.content_length == -1 ? size : answer.content_length;
  if (announced >= 0) text += "Content-Length: " + std::to_string(announced) + "\r\n";
  text += "Connection: close\r\n\r\n";
  if (!send_all(socket, text.data(), text.size()) || head) return;
  const int64_t sent = answer.cut_after < 0 ? size : std::min(size, answer.cut_after);
  do {
    if (!send_all(socket, answer.body.data(), static_cast<size_t>(sent))) return;
  } while (answer.endless && !stop_.load());
  while (answer.hang && !stop_.load()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

HubServerAnswer HubServer::answer(const HubServerRequest& request) const {
  std::lock_guard lock(mutex_);
  const std::string api = "/api/models/";
  if (request.cdn) return blob(request);
  if (request.path.rfind(api, 0) == 0) return listing(request.path.substr(api.size()));
  return file(request);
}

HubServerAnswer HubServer::listing(const std::string& path) const {
  const size_t split = path.find("/revision/");
  const auto found = repos_.find(path.substr(0, split));
  if (found == repos_.end() || split == std::string::npos) {
    return error_answer(404, "RepoNotFound");
  }
  const HubServerRepo& repo = found->second;
  const std::string rest = path.substr(split + 10);
  const std::string revision = unquote(rest.substr(0, rest.find('?')));
  if (revision != repo.commit && repo.revisions.count(revision) == 0) {
    return error_answer(404, "RevisionNotFound");
  }
  nlohmann::json json = {{"sha", repo.commit}, {"siblings", nlohmann::json::array()}};
  for (const auto& [name, content] : repo.files) {
    nlohmann::json entry = {{"rfilename", name}};
    if (repo.lists_blobs) {
      entry["size"] = content.size();
      entry["blobId"] = digest(DigestKind::kGitSha1, content);
      if (repo.large.count(name) > 0) {
        entry["lfs"] = {{"sha256", etag(repo, name)}, {"size", content.size()}};
      }
    }
    json["siblings"].push_back(entry);
  }
  return {.status = 200, .headers = {}, .body = json.dump()};
}

HubServerAnswer HubServer::file(const HubServerRequest& request) const {
  const std::string mark = "/resolve/";
  const size_t split = request.path.find(mark);
  const size_t slash = request.path.find('/', split + mark.size());
  if (split == std::string::npos || slash == std::string::npos) return error_answer(404, "");
  const auto found = repos_.find(request.path.substr(1, split - 1));
  if (found == repos_.end()) return error_answer(404, "RepoNotFound");
  const HubServerRepo& repo = found->second;
  const std::string name = unquote(request.path.substr(slash + 1));
  if (repo.files.count(name) == 0) return error_answer(404, "EntryNotFound");
  HubServerAnswer answer;
  answer.headers.emplace_back("X-Repo-Commit", repo.commit);
  const std::string quoted = "\"" + etag(repo, name) + "\"";
  if (repo.large.count(name) > 0) {
    answer.status = 302;
    answer.headers.emplace_back("X-Linked-Etag", quoted);
    answer.headers.emplace_back("X-Linked-Size", std::to_string(repo.files.at(name).size()));
    answer.headers.emplace_back("Location", cdn_url() + "/cdn" + request.path);
    return answer;
  }
  answer.headers.emplace_back("ETag", quoted);
  HubServerAnswer content = blob(request);
  content.headers.insert(content.headers.end(), answer.headers.begin(), answer.headers.end());
  return content;
}

HubServerAnswer HubServer::blob(const HubServerRequest& request) const {
  const size_t begin = request.path.rfind("/cdn/", 0) == 0 ? 5 : 1;
  const size_t split = request.path.find("/resolve/");
  if (split == std::string::npos) return error_answer(404, "");
  const auto found = repos_.find(request.path.substr(begin, split - begin));
  const size_t slash = request.path.find('/', split + 9);
  if (found == repos_.end() || slash == std::string::npos) return error_answer(404, "");
  const auto& files = found->second.files;
  const auto file = files.find(unquote(request.path.substr(slash + 1)));
  if (file == files.end()) return error_answer(404, "");
  const std::string& content = file->second;
  const auto range = request.headers.find("range");
  if (range == request.headers.end()) return {.status = 200, .headers = {}, .body = content};
  const size_t from = std::stoul(range->second.substr(range->second.find('=') + 1));
  if (from >= content.size()) return error_answer(416, "");
  const std::string bounds = "bytes " + std::to_string(from) + "-" +
                             std::to_string(content.size() - 1) + "/" +
                             std::to_string(content.size());
  return {.status = 206, .headers = {{"Content-Range", bounds}}, .body = content.substr(from)};
}

}  // namespace foretoken::test
