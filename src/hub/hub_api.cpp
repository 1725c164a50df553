#include "hub/hub_api.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <thread>

#include "hub/digest.h"

namespace foretoken {
namespace {

using nlohmann::json;

constexpr size_t kMaxListingBytes = size_t{32} << 20;
constexpr int kMaxListingDepth = 6;

std::string quote_path(const std::string& path) {
  std::string quoted;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    quoted += (begin == 0 ? "" : "/") + url_quote(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return quoted;
}

std::string text_of(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

int64_t size_of(const json& object) {
  const auto found = object.find("size");
  if (found == object.end() || !found->is_number_integer()) return -1;
  return std::max<int64_t>(-1, found->get<int64_t>());
}

HubFile read_sibling(const json& entry) {
  HubFile file{text_of(entry, "rfilename"), text_of(entry, "blobId"), size_of(entry)};
  const auto large = entry.find("lfs");
  if (large != entry.end() && large->is_object()) {
    file.etag = text_of(*large, "sha256");
    file.size = size_of(*large);
  }
  if (digest_kind(file.etag) == DigestKind::kNone || file.size < 0) {
    file.etag.clear();
    file.size = -1;
  }
  return file;
}

std::string normal_etag(std::string etag) {
  if (etag.rfind("W/", 0) == 0) etag.erase(0, 2);
  const auto is_quote = [](char c) { return c == '"'; };
  etag.erase(std::remove_if(etag.begin(), etag.end(), is_quote), etag.end());
  return etag;
}

Status bad_server(const std::string& url, const std::string& why) {
  return invalid_argument("the answer of " + url + " " + why +
                          "; check that HF_ENDPOINT is a Hugging Face Hub");
}

std::string access_advice(const HubOptions& options) {
  return options.token.empty() ? "no token was sent; set HF_TOKEN"
                               : "the token that was sent (HF_TOKEN) gives no access; check it";
}

}  // namespace

HttpSettings http_settings(const HubOptions& options, std::function<bool()> cancelled) {
  return {.endpoint = options.endpoint,
          .token = options.token,
          .ca_file = options.ca_file,
          .connect_timeout = options.connect_timeout,
          .stall_timeout = options.stall_timeout,
          .cancelled = std::move(cancelled)};
}

bool wait_for_attempt(int attempt, const HttpReply& last, const HubOptions& options,
                      const std::function<bool()>& cancelled) {
  using std::chrono::milliseconds;
  const milliseconds longest{60000};
  milliseconds delay = options.retry_delay * (1 << std::min(attempt - 2, 16));
  if (const int64_t asked = last.number("retry-after"); asked >= 0) {
    delay = std::max(delay, milliseconds(std::min<int64_t>(asked, 60) * 1000));
  }
  const auto end = std::chrono::steady_clock::now() + std::min(delay, longest);
  while (std::chrono::steady_clock::now() < end) {
    if (cancelled()) return false;
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(
        milliseconds(50), end - std::chrono::steady_clock::now()));
  }
  return !cancelled();
}

Status explain_reply(const HttpReply& reply, const HubOptions& options, const RepoId& id,
                     const std::string& what) {
  if (!reply.error.ok()) return reply.error;
  const std::string page = options.endpoint + "/" + id.name;
  const std::string no_folder = "; a local folder '" + id.name + "' does not exist either";
  if (!reply.failure.empty()) {
    return internal_error("cannot reach " + options.endpoint + " for " + what + " (" +
                          reply.failure + "); check the network, the proxy and HF_ENDPOINT" +
                          (what == id.name ? no_folder : ""));
  }
  const std::string code = reply.header("x-error-code");
  if (code == "GatedRepo" || (reply.status == 403 && code.empty())) {
    return invalid_argument(id.name + " is gated: accept its licence at " + page +
                            " and set HF_TOKEN to a token of that account (" +
                            access_advice(options) + ")");
  }
  if (code == "RevisionNotFound") {
    return not_found(id.name + " has no revision '" + id.revision +
                     "'; check --revision (the branches and tags are at " + page + "/tree/main)");
  }
  if (code == "EntryNotFound") return not_found(what + " does not exist on " + options.endpoint);
  if (reply.status == 401) {
    return invalid_argument(id.name + " does not exist on " + options.endpoint +
                            " or is private or gated: check the name, and that your account may "
                            "see " +
                            page + " (" + access_advice(options) + ")" + no_folder);
  }
  if (reply.status == 404) {
    return not_found(what + " does not exist on " + options.endpoint + ": check the name" +
                     no_folder);
  }
  if (reply.status == 403) {
    return invalid_argument(what + ": access is refused (" + access_advice(options) + "); see " +
                            page);
  }
  return internal_error(options.endpoint + " answered " + std::to_string(reply.status) + " for " +
                        what + "; try again later" +
                        (reply.is_transient() ? "" : ", or check HF_ENDPOINT"));
}

bool is_blob_name(const std::string& etag) {
  const auto is_allowed = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  };
  return !etag.empty() && etag.size() <= 128 &&
         std::isalnum(static_cast<unsigned char>(etag.front())) != 0 &&
         std::all_of(etag.begin(), etag.end(), is_allowed);
}

Result<HubListing> parse_listing(std::string_view body, const std::string& url) {
  bool too_deep = false;
  const json::parser_callback_t limit = [&](int depth, json::parse_event_t, json&) {
    too_deep = too_deep || depth > kMaxListingDepth;
    return depth <= kMaxListingDepth;
  };
  const json answer = json::parse(body.begin(), body.end(), limit, false);
  if (answer.is_discarded() || !answer.is_object()) return bad_server(url, "is no JSON object");
  HubListing listing{.commit = text_of(answer, "sha"), .files = {}};
  if (!is_commit(listing.commit)) return bad_server(url, "names no commit ('sha')");
  const auto siblings = answer.find("siblings");
  if (siblings == answer.end() || !siblings->is_array()) {
    return bad_server(url, "lists no files ('siblings')");
  }
  for (const json& entry : *siblings) {
    HubFile file = entry.is_object() ? read_sibling(entry) : HubFile{};
    if (!is_safe_path(file.name)) {
      return bad_server(url,
                        "lists a file with the unsafe name " +
                            json(file.name).dump(-1, ' ', true, json::error_handler_t::replace));
    }
    listing.files.push_back(std::move(file));
  }
  return listing;
}

Result<HubListing> list_repo(HttpClient& client, const HubOptions& options, const RepoId& id,
                             int max_attempts) {
  const std::string url = options.endpoint + "/api/models/" + quote_path(id.name) + "/revision/" +
                          url_quote(id.revision) + "?blobs=true";
  const auto cancelled = [&client] { return client.cancelled(); };
  HttpReply reply;
  for (int attempt = 1; attempt <= max_attempts; ++attempt) {
    if (attempt > 1 && !wait_for_attempt(attempt, reply, options, cancelled)) break;
    reply = client.send({.url = url, .max_body = kMaxListingBytes});
    if (!reply.is_transient()) break;
  }
  if (client.cancelled()) return aborted("the download was interrupted");
  if (!reply.error.ok() || !reply.failure.empty() || reply.status != 200) {
    return explain_reply(reply, options, id, id.name);
  }
  return parse_listing(reply.body, url);
}

std::string file_url(const HubOptions& options, const RepoId& id, const std::string& commit,
                     const std::string& name) {
  return options.endpoint + "/" + quote_path(id.name) + "/resolve/" + commit + "/" +
         quote_path(name);
}

Status find_file(HttpClient& client, const HubOptions& options, const RepoId& id,
                 const std::string& commit, HubFile* file) {
  const std::string url = file_url(options, id, commit, file->name);
  const std::string what = file->name + " of " + id.name;
  const auto cancelled = [&client] { return client.cancelled(); };
  HttpReply reply;
  for (int attempt = 1; attempt <= options.max_attempts; ++attempt) {
    if (attempt > 1 && !wait_for_attempt(attempt, reply, options, cancelled)) break;
    reply = client.send({.url = url, .head = true, .stay_on_host = true});
    if (!reply.is_transient()) break;
  }
  if (client.cancelled()) return aborted("the download was interrupted");
  const bool found = reply.status >= 200 && reply.status < 400;
  if (!reply.error.ok() || !reply.failure.empty() || !found) {
    return explain_reply(reply, options, id, what);
  }
  const bool linked = !reply.header("x-linked-etag").empty();
  file->etag = normal_etag(reply.header(linked ? "x-linked-etag" : "etag"));
  file->size = reply.number(linked ? "x-linked-size" : "content-length");
  const std::string answered = reply.header("x-repo-commit");
  if (answered != commit) {
    return bad_server(url, "is of commit '" + answered.substr(0, 64) + "' (X-Repo-Commit)");
  }
  if (!is_blob_name(file->etag)) return bad_server(url, "has no usable ETag");
  if (file->size < 0) return bad_server(url, "does not say how large the file is");
  return {};
}

}  // namespace foretoken
