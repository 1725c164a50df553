#pragma once
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <unordered_set>

#include "base/result.h"
#include "serve/openai/openai_request.h"

namespace foretoken {

// What a line's answer is: that of its kind, or what is made of the kind's answer.
enum class BatchForm { kOfItsKind, kScores, kRanking, kResponse };

// One line of an OpenAI batch file, or why it is none.
struct BatchLine {
  int64_t number = 0;     // from 1
  std::string custom_id;  // empty when the line has none
  OpenAiKind kind = OpenAiKind::kChat;
  BatchForm form = BatchForm::kOfItsKind;
  nlohmann::ordered_json body;
  Status error;
};

// Reads {"custom_id", "method": "POST", "url", "body"}.
BatchLine parse_batch_line(const std::string& text, int64_t number);

// Reads a batch file line by line; blank lines are passed over. One thread.
class BatchReader {
 public:
  static Result<BatchReader> open(const std::string& path);
  // False at the end.
  bool next(std::string* text, int64_t* number);

 private:
  std::ifstream file_;
  int64_t number_ = 0;
};

// What of a batch is done: the custom_ids that the output holds, and the numbers of lines without
// one.
struct BatchDone {
  std::unordered_set<std::string> custom_ids;
  std::set<int64_t> numbers;

  bool has(const BatchLine& line) const;
  size_t size() const { return custom_ids.size() + numbers.size(); }
};

// Reads what an earlier run wrote and cuts a half-written last line off. A file that does not exist
// has nothing done; one that holds anything else than batch output is an error and stays as it is.
Result<BatchDone> resume_batch_output(const std::string& path);

// Counts the requests of the file and refuses custom_ids that are given twice.
Result<int64_t> check_batch_input(const std::string& path);

// Appends lines to a file; each reaches the system before append() returns. One thread.
class BatchWriter {
 public:
  static Result<BatchWriter> open(const std::string& path);
  Status append(const nlohmann::ordered_json& line);

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Closer> file_;
  std::string path_;
};

}  // namespace foretoken
