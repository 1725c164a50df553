#include "otlp/trace_settings.h"

#include <foretoken/version.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/text/ascii_text.h"
#include "net/url.h"

namespace foretoken::otlp {
namespace {

constexpr const char* kEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";

// A variable's name and text; the text is empty where it is not set.
struct Variable {
  std::string name;
  std::string text;
};

class Environment {
 public:
  explicit Environment(const VariableReader& read) : read_(read) {}

  Variable one(const std::string& name) const {
    const char* text = read_(name.c_str());
    return {name, text == nullptr ? "" : trimmed_text(text)};
  }
  // OTEL_EXPORTER_OTLP_TRACES_<end>, or that of all signals.
  Variable of_exporter(const std::string& end) const {
    Variable of_traces = one("OTEL_EXPORTER_OTLP_TRACES_" + end);
    return of_traces.text.empty() ? one("OTEL_EXPORTER_OTLP_" + end) : of_traces;
  }

 private:
  const VariableReader& read_;
};

// Larger ones are read as this one, which as milliseconds clocks still count.
constexpr int64_t kLargest = 2'147'483'647;

Status read_number(const Variable& variable, int64_t* value) {
  const std::string& text = variable.text;
  if (text.empty()) return {};
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  const bool is_number = error == std::errc() && rest == text.data() + text.size();
  *value = std::min(*value, kLargest);
  if (is_number && *value > 0) return {};
  return invalid_argument(variable.name + "=" + text +
                          " is no whole number above 0; correct or unset it");
}

Status read_milliseconds(const Variable& variable, std::chrono::milliseconds* time) {
  int64_t value = time->count();
  FT_RETURN_IF_ERROR(read_number(variable, &value));
  *time = std::chrono::milliseconds(value);
  return {};
}

Status read_size(const Variable& variable, size_t* size) {
  auto value = static_cast<int64_t>(*size);
  FT_RETURN_IF_ERROR(read_number(variable, &value));
  *size = static_cast<size_t>(value);
  return {};
}

// "%20" is a blank.
std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const char* digits = text.data() + i + 1;
    const bool is_code = text[i] == '%' && i + 2 < text.size() &&
                         std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2;
    decoded += is_code ? static_cast<char>(value) : text[i];
    if (is_code) i += 2;
  }
  return decoded;
}

// "name=value,name=value", values percent-encoded.
Result<net::Headers> read_pairs(const Variable& variable) {
  net::Headers pairs;
  std::string_view rest = variable.text;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string pair = trimmed_text(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    if (pair.empty()) continue;
    const size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0) {
      return invalid_argument(variable.name + " has '" + pair +
                              "' where NAME=VALUE belongs; separate pairs by commas");
    }
    pairs.emplace_back(trimmed_text(percent_decoded(pair.substr(0, equals))),
                       trimmed_text(percent_decoded(pair.substr(equals + 1))));
  }
  return pairs;
}

Status check_headers(const Variable& variable, const net::Headers& headers) {
  for (const auto& [name, value] : headers) {
    const auto breaks = [](char c) { return c == '\r' || c == '\n' || c == '\0'; };
    if (std::ranges::any_of(name + value, breaks)) {
      return invalid_argument(variable.name + ": the header '" + trimmed_text(name) +
                              "' has a line break; take it out");
    }
  }
  return {};
}

Status no_grpc(const std::string& name, const std::string& text) {
  return unsupported(name + " " + text +
                     ": spans go over HTTP here, not over gRPC; name the collector's port for "
                     "HTTP, http://localhost:4318/v1/traces, and leave "
                     "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL out or at http/protobuf");
}

// Of a collector that listens for HTTP.
Result<std::string> read_address(const std::string& name, const std::string& text,
                                 const Variable& protocol) {
  const std::string lower = lower_case(text);
  const bool has_scheme = lower.starts_with("http://") || lower.starts_with("https://");
  if (protocol.text == "grpc") return no_grpc(protocol.name, protocol.text);
  if (!protocol.text.empty() && protocol.text != "http/protobuf") {
    return unsupported(protocol.name + "=" + protocol.text +
                       " is not spoken here; use http/protobuf, which every collector takes");
  }
  if (!has_scheme) return no_grpc(name, text);
  FT_ASSIGN_OR_RETURN(const net::Url url, net::parse_url(text));
  if (url.port == "4317" && protocol.text.empty()) return no_grpc(name, text);
  return url.origin() + (url.path.empty() ? "/v1/traces" : url.path);
}

// As OpenTelemetry's libraries describe a program.
Result<Attributes> read_resource(const Environment& environment) {
  net::Headers texts = {{"service.name", "foretoken"},
                        {"service.version", kVersion},
                        {"telemetry.sdk.name", "foretoken"},
                        {"telemetry.sdk.language", "cpp"},
                        {"telemetry.sdk.version", kVersion}};
  FT_ASSIGN_OR_RETURN(net::Headers given, read_pairs(environment.one("OTEL_RESOURCE_ATTRIBUTES")));
  const std::string service = environment.one("OTEL_SERVICE_NAME").text;
  if (!service.empty()) given.emplace_back("service.name", service);
  for (auto& [name, value] : given) {
    const auto known =
        std::ranges::find_if(texts, [&](const auto& pair) { return pair.first == name; });
    if (known == texts.end()) {
      texts.emplace_back(std::move(name), std::move(value));
    } else {
      known->second = std::move(value);
    }
  }
  Attributes resource = {{"process.pid", static_cast<int64_t>(getpid())}};
  for (auto& [name, value] : texts) {
    if (name != "process.pid") resource.emplace_back(std::move(name), std::move(value));
  }
  return resource;
}

}  // namespace

Result<std::optional<TraceSettings>> read_trace_settings(const std::string& endpoint,
                                                         const VariableReader& variable) {
  const Environment environment(variable);
  const Variable by_default = environment.one(kEndpoint);
  const bool is_disabled = lower_case(environment.one("OTEL_SDK_DISABLED").text) == "true";
  const std::string text = endpoint.empty() ? by_default.text : trimmed_text(endpoint);
  if (text.empty() || is_disabled) return std::optional<TraceSettings>();
  TraceSettings settings;
  FT_ASSIGN_OR_RETURN(settings.address,
                      read_address(endpoint.empty() ? kEndpoint : "--otlp-traces-endpoint", text,
                                   environment.of_exporter("PROTOCOL")));
  const Variable headers = environment.of_exporter("HEADERS");
  FT_ASSIGN_OR_RETURN(settings.headers, read_pairs(headers));
  FT_RETURN_IF_ERROR(check_headers(headers, settings.headers));
  settings.ca_file = environment.of_exporter("CERTIFICATE").text;
  FT_RETURN_IF_ERROR(read_milliseconds(environment.of_exporter("TIMEOUT"), &settings.timeout));
  FT_RETURN_IF_ERROR(
      read_milliseconds(environment.one("OTEL_BSP_SCHEDULE_DELAY"), &settings.delay));
  FT_RETURN_IF_ERROR(
      read_size(environment.one("OTEL_BSP_MAX_QUEUE_SIZE"), &settings.max_queued_spans));
  FT_RETURN_IF_ERROR(
      read_size(environment.one("OTEL_BSP_MAX_EXPORT_BATCH_SIZE"), &settings.max_batch_spans));
  // A full queue is sent at once.
  settings.max_batch_spans = std::min(settings.max_batch_spans, settings.max_queued_spans);
  FT_ASSIGN_OR_RETURN(settings.resource, read_resource(environment));
  FT_ASSIGN_OR_RETURN(settings.sampler,
                      parse_trace_sampler(environment.one("OTEL_TRACES_SAMPLER").text,
                                          environment.one("OTEL_TRACES_SAMPLER_ARG").text));
  return std::optional<TraceSettings>(std::move(settings));
}

}  // namespace foretoken::otlp
