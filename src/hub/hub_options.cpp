#include "hub/hub_options.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "hub/ollama_models.h"

namespace foretoken {
namespace {

class Environment {
 public:
  explicit Environment(const EnvironmentLookup& lookup) : lookup_(lookup) {}

  std::string get(const std::string& name) const { return lookup_(name).value_or(""); }

  // The first of `names` that is set to something.
  std::string first(std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      if (std::string value = get(name); !value.empty()) return value;
    }
    return "";
  }

  bool is_true(const std::string& value) const {
    std::string upper = value;
    std::transform(upper.begin(), upper.end(), upper.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return upper == "1" || upper == "ON" || upper == "YES" || upper == "TRUE";
  }

  // `path` with a leading ~ and with $NAME and ${NAME} replaced; unknown names stay as they are.
  std::string expand(const std::string& path) const {
    std::string text = path;
    if (text == "~" || text.rfind("~/", 0) == 0) text = get("HOME") + text.substr(1);
    std::string expanded;
    for (size_t i = 0; i < text.size();) {
      const bool braces = text.compare(i, 2, "${") == 0;
      size_t end = i + (braces ? 2 : 1);
      while (end < text.size() &&
             (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_')) {
        ++end;
      }
      const size_t begin = i + (braces ? 2 : 1);
      const bool closed = !braces || (end < text.size() && text[end] == '}');
      const auto value =
          text[i] == '$' && closed ? lookup_(text.substr(begin, end - begin)) : std::nullopt;
      if (value) {
        expanded += *value;
        i = end + (braces ? 1 : 0);
      } else {
        expanded += text[i++];
      }
    }
    return expanded;
  }

 private:
  const EnvironmentLookup& lookup_;
};

std::string join(const std::string& folder, const char* name) {
  return folder.empty() ? "" : (std::filesystem::path(folder) / name).string();
}

std::string trim(const std::string& text) {
  const char* blank = " \t\r\n";
  const size_t begin = text.find_first_not_of(blank);
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(blank) - begin + 1);
}

std::string home_folder(const Environment& environment) {
  if (const std::string home = environment.get("HF_HOME"); !home.empty()) {
    return environment.expand(home);
  }
  std::string cache = environment.get("XDG_CACHE_HOME");
  if (cache.empty()) cache = join(environment.get("HOME"), ".cache");
  return join(environment.expand(cache), "huggingface");
}

std::string find_token(const Environment& environment, const std::string& home) {
  if (environment.is_true(environment.get("HF_HUB_DISABLE_IMPLICIT_TOKEN"))) return "";
  const std::string token = trim(environment.first({"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}));
  if (!token.empty()) return token;
  const std::string named = environment.get("HF_TOKEN_PATH");
  std::ifstream file(named.empty() ? join(home, "token") : environment.expand(named));
  std::string line;
  std::getline(file, line);
  return trim(line);
}

}  // namespace

HubOptions hub_options_from_environment(const EnvironmentLookup& lookup) {
  const Environment environment(lookup);
  HubOptions options;
  const std::string home = home_folder(environment);
  const std::string cache = environment.first({"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"});
  options.cache_folder = cache.empty() ? join(home, "hub") : environment.expand(cache);
  options.ollama_folder = ollama_folder(lookup);
  if (const std::string endpoint = environment.get("HF_ENDPOINT"); !endpoint.empty()) {
    options.endpoint = endpoint.substr(0, endpoint.find_last_not_of('/') + 1);
  }
  options.token = find_token(environment, home);
  options.ca_file = environment.first({"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"});
  options.offline =
      environment.is_true(environment.first({"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"}));
  return options;
}

HubOptions hub_options_from_environment() {
  return hub_options_from_environment([](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
}

}  // namespace foretoken
