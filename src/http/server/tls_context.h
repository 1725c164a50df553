#pragma once
#include <boost/asio/ssl/context.hpp>
#include <memory>

#include "base/result.h"
#include "http/server/server.h"

namespace foretoken::http {

// TLS 1.2 and 1.3 with the files of `config`; null where it names no certificate. InvalidArgument
// names the option whose file cannot be read, does not fit the others or is missing.
Result<std::shared_ptr<boost::asio::ssl::context>> make_tls_context(const TlsConfig& config);

}  // namespace foretoken::http
