#include "serve/routes/elsewhere_routes.h"

#include "serve/flow/serve_context.h"

namespace foretoken {
namespace {

using http::Route;

struct EndpointElsewhere {
  const char* method;
  const char* pattern;
  const char* why;
};

constexpr const char* kTextsAlone =
    "only texts are read and written here; sounds and images need a server of their own models";
constexpr const char* kNoFiles =
    "files and batches are not kept here; 'foretoken run-batch' answers a file of requests";
constexpr const char* kNoThreads =
    "OpenAI's assistants are not spoken here; /v1/responses goes on with a 'conversation' of "
    "/v1/conversations, or from 'previous_response_id'";
constexpr const char* kNoStoredChats =
    "chats are not kept here; /v1/responses keeps what it answers, and /v1/conversations what was "
    "said";
constexpr const char* kNotGemini =
    "Google's own form is not spoken here; take a client for OpenAI's API, with this server's "
    "address and /v1";
constexpr const char* kNotAzure =
    "a deployment has /chat/completions, /completions and /embeddings here, and /openai/v1 all of "
    "/v1; it is called as in GET /v1/models";
constexpr const char* kNoTensors =
    "tensors are not taken here; use /v1/chat/completions, /v1/completions or /v1/embeddings";
constexpr const char* kNotLmStudio =
    "KoboldCpp's chats and LM Studio's newer ones are not spoken here; take a client for OpenAI's "
    "API, "
    "with this server's address and /v1 (/v1/models, /v1/chat/completions, /v1/completions)";

constexpr const char* kFixedWeights =
    "the weights are those that the server was started with; start another one with the new ones";
constexpr const char* kNoPause =
    "requests are not held here; /abort_requests ends them, and SIGTERM lets them end";
constexpr const char* kKeepsMemory =
    "memory is given back at the end alone; stop the server, it starts in a moment";
constexpr const char* kNoSessions =
    "there are no sessions to open; what requests have in common is cached by itself";
constexpr const char* kNoExpertRecords =
    "the choices of experts are not recorded here; leave that out";
constexpr const char* kFixedRanks =
    "the number of ranks is that of the start; start the server with another "
    "--data-parallel-size";
constexpr const char* kOneModel =
    "this server has one model, which is loaded; GET /v1/models tells its names";

constexpr EndpointElsewhere kElsewhere[] = {
    {"POST", "/v1beta/models/{id...}", kNotGemini},
    {"GET", "/v1beta/models", kNotGemini},
    {"POST", "/openai/deployments/{id...}", kNotAzure},
    {"POST", "/v2/models/{id...}", kNoTensors},
    {"POST", "/api/v1/chat", kNotLmStudio},
    {"GET", "/api/v1/model", kNotLmStudio},
    {"POST", "/api/v1/generate", kNotLmStudio},
    {"POST", "/v1/audio/transcriptions", kTextsAlone},
    {"POST", "/v1/audio/translations", kTextsAlone},
    {"POST", "/v1/audio/speech", kTextsAlone},
    {"POST", "/v1/images/generations", kTextsAlone},
    {"POST", "/v1/images/edits", kTextsAlone},
    {"POST", "/v1/moderations", kNoClasses},
    {"GET", "/v1/chat/completions", kNoStoredChats},
    {"POST", "/start_profile", "start the server with --profile FILE"},
    {"POST", "/stop_profile", "start the server with --profile FILE"},
    {"POST", "/v2/chat", "use /v1/chat/completions"},
    {"POST", "/cohere/v2/chat", "use /v1/chat/completions"},
    {"POST", "/v1/decisions", kNoClasses},
    {"POST", "/encode", "use /v1/embeddings with 'input'"},
    {"GET", "/v1/realtime", kTextsAlone},
    {"POST", "/v1/realtime/client_secrets", kTextsAlone},
    {"POST", "/v1/images/variations", kTextsAlone},
    {"POST", "/v1/videos", kTextsAlone},
    {"GET", "/docs", "/openapi.json describes all endpoints and fields"},
    {"GET", "/redoc", "/openapi.json describes all endpoints and fields"},
    {"POST", "/models/load", kOneModel},
    {"POST", "/models/unload", kOneModel},
    {"POST", "/v1/models/load", kOneModel},
    {"POST", "/v1/models/unload", kOneModel},
    // What trainers and operators do with engines of vLLM and SGLang.
    {"POST", "/pause", kNoPause},
    {"POST", "/resume", kNoPause},
    {"POST", "/pause_generation", kNoPause},
    {"POST", "/continue_generation", kNoPause},
    {"POST", "/collective_rpc", kFixedWeights},
    {"POST", "/init_weight_transfer_engine", kFixedWeights},
    {"POST", "/start_weight_update", kFixedWeights},
    {"POST", "/update_weights", kFixedWeights},
    {"POST", "/finish_weight_update", kFixedWeights},
    {"POST", "/update_weights_from_disk", kFixedWeights},
    {"POST", "/update_weights_from_tensor", kFixedWeights},
    {"POST", "/update_weights_from_distributed", kFixedWeights},
    {"POST", "/init_weights_update_group", kFixedWeights},
    {"POST", "/destroy_weights_update_group", kFixedWeights},
    {"POST", "/update_weight_version", kFixedWeights},
    {"POST", "/release_memory_occupation", kKeepsMemory},
    {"POST", "/resume_memory_occupation", kKeepsMemory},
    {"POST", "/open_session", kNoSessions},
    {"POST", "/close_session", kNoSessions},
    {"POST", "/start_expert_distribution_record", kNoExpertRecords},
    {"POST", "/stop_expert_distribution_record", kNoExpertRecords},
    {"POST", "/dump_expert_distribution_record", kNoExpertRecords},
    {"POST", "/scale_elastic_ep", kFixedRanks},
    {"POST", "/is_scaling_elastic_ep", kFixedRanks},
};

// Things with ids that are not kept here, whatever is done with them.
struct NotKept {
  const char* path;
  const char* why;
};

constexpr NotKept kNotKept[] = {
    {"/v1/files", kNoFiles},
    {"/v1/uploads", kNoFiles},
    {"/v1/batches", kNoFiles},
    {"/v1/messages/batches", kNoFiles},
    {"/v1/threads", kNoThreads},
    {"/v1/assistants", kNoThreads},
    {"/v1/vector_stores", "texts are not kept here; /v1/embeddings gives the vectors of a store"},
    {"/v1/fine_tuning",
     "nothing is trained here; --lora-modules serves what was trained elsewhere"},
};

}  // namespace

Route missing_route(const char* method, const char* pattern, const char* why) {
  Route route;
  route.method = method;
  route.pattern = pattern;
  route.handler = [why](const std::shared_ptr<http::Exchange>& exchange) {
    const bool is_anthropic = exchange->request().path.starts_with("/v1/messages/");
    respond_error(*exchange, is_anthropic ? anthropic_error : openai_error, not_found(why));
  };
  route.instead = why;
  return route;
}

std::vector<Route> elsewhere_routes() {
  std::vector<Route> routes;
  for (const EndpointElsewhere& other : kElsewhere) {
    routes.push_back(missing_route(other.method, other.pattern, other.why));
  }
  for (const NotKept& thing : kNotKept) {
    const std::string below = std::string(thing.path) + "/{id...}";
    for (const char* method : {"GET", "POST", "DELETE"}) {
      routes.push_back(missing_route(method, thing.path, thing.why));
      routes.push_back(missing_route(method, below.c_str(), thing.why));
    }
  }
  return routes;
}

}  // namespace foretoken
