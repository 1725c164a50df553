#include "apps/batch/batch_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <unordered_map>

#include "base/files/json_object.h"
#include "base/text/ascii_text.h"
#include "serve/fields/json_fields.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

Status file_error(const std::string& what, const std::string& path) {
  return {StatusCode::kNotFound, what + " '" + path + "': " + std::strerror(errno)};
}

struct BatchUrl {
  const char* url;
  OpenAiKind kind;
  BatchForm form;
};

constexpr BatchUrl kBatchUrls[] = {
    {"/v1/chat/completions", OpenAiKind::kChat, BatchForm::kOfItsKind},
    {"/v1/completions", OpenAiKind::kCompletion, BatchForm::kOfItsKind},
    {"/v1/responses", OpenAiKind::kChat, BatchForm::kResponse},
    {"/v1/embeddings", OpenAiKind::kEmbedding, BatchForm::kOfItsKind},
    {"/v1/score", OpenAiKind::kEmbedding, BatchForm::kScores},
    {"/score", OpenAiKind::kEmbedding, BatchForm::kScores},
    {"/v1/rerank", OpenAiKind::kEmbedding, BatchForm::kRanking},
    {"/v2/rerank", OpenAiKind::kEmbedding, BatchForm::kRanking},
    {"/rerank", OpenAiKind::kEmbedding, BatchForm::kRanking},
};

// The path of an address, with a slash before it and none behind it.
std::string path_of(std::string url) {
  const size_t scheme = url.find("://");
  if (scheme != std::string::npos) url.erase(0, std::min(url.find('/', scheme + 3), url.size()));
  if (url.ends_with('/')) url.pop_back();
  return url.starts_with('/') ? url : "/" + url;
}

void read_url(JsonFields& fields, BatchLine* line) {
  std::string method = "POST";
  fields.read("method", &method);
  if (lower_case(method) != "post")
    fields.fail("'method' is \"" + method + "\"; it must be \"POST\"");
  std::string url;
  fields.read("url", &url);
  for (const BatchUrl& row : kBatchUrls) {
    if (path_of(url) != row.url) continue;
    line->kind = row.kind;
    line->form = row.form;
    return;
  }
  fields.fail("'url' is \"" + url +
              "\"; it must be /v1/chat/completions, /v1/completions, /v1/responses, "
              "/v1/embeddings, /v1/score or /v1/rerank");
}

// One line of an earlier output goes into `done`; false when it is none.
bool take_done_line(const std::string& text, BatchDone* done) {
  const json line = parsed_ordered_json(text);
  if (!line.is_object() || !line.contains("custom_id") || !line.contains("response")) return false;
  if (line["custom_id"].is_string()) {
    done->custom_ids.insert(line["custom_id"].get<std::string>());
    return true;
  }
  const auto error = line.find("error");
  const bool numbered = error != line.end() && error->is_object() && error->contains("line") &&
                        (*error)["line"].is_number_integer();
  if (numbered) done->numbers.insert((*error)["line"].get<int64_t>());
  return numbered;
}

// What a line of ours begins with, cut anywhere.
bool begins_like_output(const std::string& text) {
  constexpr std::string_view kBegin = "{\"id\":\"batch_req-";
  return std::string_view(text).substr(0, kBegin.size()) == kBegin.substr(0, text.size());
}

Status check_output_path(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    return invalid_argument("'" + path + "' is a folder; name a file with -o");
  }
  if (fs::exists(path, error) && !fs::is_regular_file(path, error)) {
    return invalid_argument("'" + path +
                            "' is no regular file, so that a batch could not go on after a stop; "
                            "name a file with -o");
  }
  return {};
}

}  // namespace

BatchLine parse_batch_line(const std::string& text, int64_t number) {
  BatchLine line;
  line.number = number;
  const std::string what = "line " + std::to_string(number);
  Result<json> object = parse_ordered_json_object(text, what);
  if (!object.ok()) {
    line.error = object.status();
    return line;
  }
  JsonFields fields(object.value(), what);
  fields.read("custom_id", &line.custom_id);
  if (line.custom_id.empty()) fields.fail("'custom_id' is missing; give a string");
  read_url(fields, &line);
  if (const json* body = fields.raw("body"); body != nullptr && body->is_object()) {
    line.body = *body;
  } else {
    fields.fail("'body' must be an object");
  }
  fields.refuse_unread();
  line.error = fields.status();
  return line;
}

Result<BatchReader> BatchReader::open(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    return invalid_argument("'" + path + "' is a folder; name a batch file with -i");
  }
  BatchReader reader;
  reader.file_.open(path, std::ios::binary);
  if (!reader.file_) return file_error("cannot read", path);
  return reader;
}

bool BatchReader::next(std::string* text, int64_t* number) {
  while (std::getline(file_, *text)) {
    *number = ++number_;
    if (text->find_first_not_of(" \t\r") != std::string::npos) return true;
  }
  return false;
}

bool BatchDone::has(const BatchLine& line) const {
  return line.custom_id.empty() ? numbers.count(line.number) > 0
                                : custom_ids.count(line.custom_id) > 0;
}

Result<BatchDone> resume_batch_output(const std::string& path) {
  FT_RETURN_IF_ERROR(check_output_path(path));
  BatchDone done;
  std::error_code error;
  if (!fs::exists(path, error)) return done;
  std::ifstream file(path, std::ios::binary);
  if (!file) return file_error("cannot read", path);
  uintmax_t num_whole = 0;  // bytes of whole lines
  int64_t number = 0;
  for (std::string text; std::getline(file, text);) {
    ++number;
    const bool whole = !file.eof();
    if (whole ? !take_done_line(text, &done) : !begins_like_output(text)) {
      return invalid_argument("'" + path + "' line " + std::to_string(number) +
                              " is no batch output; name another file with -o");
    }
    if (whole) num_whole += text.size() + 1;
  }
  if (num_whole == fs::file_size(path, error)) return done;
  fs::resize_file(path, num_whole, error);
  if (error) return invalid_argument("cannot shorten '" + path + "': " + error.message());
  return done;
}

Result<int64_t> check_batch_input(const std::string& path) {
  FT_ASSIGN_OR_RETURN(BatchReader reader, BatchReader::open(path));
  std::unordered_map<std::string, int64_t> first;
  int64_t num_requests = 0;
  int64_t number = 0;
  for (std::string text; reader.next(&text, &number);) {
    ++num_requests;
    const json line = parsed_ordered_json(text);
    if (!line.is_object() || !line.contains("custom_id") || !line["custom_id"].is_string())
      continue;
    const auto [entry, fresh] = first.emplace(line["custom_id"].get<std::string>(), number);
    if (fresh) continue;
    return invalid_argument("line " + std::to_string(number) + ": custom_id '" + entry->first +
                            "' was given in line " + std::to_string(entry->second) +
                            " already; give each request its own");
  }
  if (num_requests == 0) return invalid_argument("'" + path + "' holds no request");
  return num_requests;
}

Result<BatchWriter> BatchWriter::open(const std::string& path) {
  BatchWriter writer;
  writer.path_ = path;
  writer.file_.reset(std::fopen(path.c_str(), "ab"));
  if (!writer.file_) return file_error("cannot write", path);
  return writer;
}

Status BatchWriter::append(const nlohmann::ordered_json& line) {
  const std::string text =
      line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  const bool written = std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size();
  if (written && std::fflush(file_.get()) == 0) return {};
  return file_error("cannot write", path_);
}

}  // namespace foretoken
