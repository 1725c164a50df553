#pragma once
#include <foretoken/engine.h>
#include <sys/types.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "output_inbox.h"

namespace foretoken::python {

// An engine as Python holds it. Every method is called with the GIL, releases it while it works,
// and raises when the engine was closed or belongs to the parent of a forked process: threads do
// not survive a fork, so the child leaves the engine alone.
class EngineHandle {
 public:
  // Loads the model; Ctrl-C ends that soon with KeyboardInterrupt. `config_json`: see
  // config_fields.h.
  static std::unique_ptr<EngineHandle> make(const std::string& config_json);
  ~EngineHandle();

  // Queues a request whose updates come through `inbox` under `key`; returns its id. `request`: its
  // prompt is token ids.
  std::string submit(const std::shared_ptr<OutputInbox>& inbox, uint64_t key, bool final_only,
                     Request request);
  void abort(const std::string& request_id);
  // Ends all requests with "abort" and frees the engine. May be called twice, and while other
  // threads use it: the last of them frees it.
  void close();
  bool closed() const { return engine_ == nullptr; }

  // As Engine::sleep, wake_up and is_sleeping; the bytes that were given back.
  int64_t sleep(int level, bool ends_requests);
  void wake_up(const std::vector<std::string>& tags);
  bool is_sleeping() const;
  // As Engine::load_adapter.
  void load_adapter(const std::string& name, const std::string& path,
                    const std::string& base_model_name, bool replace);
  std::vector<int32_t> encode(const std::string& text, bool add_special_tokens) const;
  std::string decode(const std::vector<int32_t>& ids, bool skip_special_tokens) const;
  // As Engine::render_chat, after OpenAI's messages were brought into form. `chat_template`: a file
  // or the template itself, in the place of the engine's; empty: the engine's.
  std::string render_chat(const std::string& messages_json, const std::string& arguments_json,
                          const std::string& chat_template) const;
  // Texts of the special tokens by role: bos_token, eos_token, ...
  std::map<std::string, std::string> special_tokens() const;
  // Fields that the generation config can ask for, as a JSON object.
  std::string default_sampling_params() const;
  EngineStats stats() const;
  EngineInfo info() const;
  // Where the model's files are: the folder given, or the one that its Hub id led to.
  const std::string& model_folder() const { return model_folder_; }

 private:
  EngineHandle(std::unique_ptr<Engine> engine, std::string model_folder);
  std::shared_ptr<Engine> engine() const;

  std::shared_ptr<Engine> engine_;
  std::string model_folder_;
  pid_t pid_;
};

}  // namespace foretoken::python
