#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace foretoken {

// How the Hugging Face Hub is reached and where its files are kept.
struct HubOptions {
  std::string revision;       // branch, tag or commit; empty: main, or what follows '@' in the id
  std::string cache_folder;   // holds models--org--name/
  std::string ollama_folder;  // Ollama's `manifests` and `blobs`; empty: there are none
  std::string endpoint = "https://huggingface.co";
  std::string token;    // empty: none; sent to the endpoint's origin only
  std::string ca_file;  // PEM file of trusted certificates; empty: the system's
  bool offline = false;
  bool weights = true;                          // false: no *.safetensors are wanted
  int max_parallel = 8;                         // files at once
  int max_attempts = 5;                         // in a row without progress
  std::chrono::milliseconds retry_delay{1000};  // before the second attempt; doubles with each
  std::chrono::milliseconds connect_timeout{10000};
  std::chrono::milliseconds stall_timeout{30000};  // without a byte
  // File, bytes done and in all; once with 0 done when a file is first known. Called by download
  // threads, never by two at once.
  std::function<void(const std::string&, int64_t, int64_t)> progress;
  const std::atomic<bool>* cancel = nullptr;  // true: stop soon with Aborted
  // Free bytes of the disk below a folder; empty: asked of the system.
  std::function<int64_t(const std::string&)> free_bytes;

  bool cancelled() const { return cancel != nullptr && cancel->load(); }
};

using EnvironmentLookup = std::function<std::optional<std::string>(const std::string&)>;

// The options that huggingface_hub would take from the same environment: HF_HOME, HF_HUB_CACHE,
// HUGGINGFACE_HUB_CACHE, XDG_CACHE_HOME, HF_ENDPOINT, HF_TOKEN, HF_TOKEN_PATH, HF_HUB_OFFLINE,
// TRANSFORMERS_OFFLINE, HF_HUB_DISABLE_IMPLICIT_TOKEN; SSL_CERT_FILE, REQUESTS_CA_BUNDLE,
// CURL_CA_BUNDLE. An empty variable counts as unset.
HubOptions hub_options_from_environment(const EnvironmentLookup& lookup);

// The same from the environment of the process.
HubOptions hub_options_from_environment();

}  // namespace foretoken
