#include "http/server/tls_context.h"

#include <openssl/ssl.h>

#include <boost/asio/ssl/error.hpp>
#include <string>

namespace foretoken::http {
namespace {

namespace ssl = boost::asio::ssl;
using boost::system::error_code;

// `wanted`: what a file that can be read must hold, which the library does not say.
Status file_error(const std::string& option, const std::string& file, const error_code& ec,
                  const std::string& wanted) {
  const bool was_read = ec.category() == boost::asio::error::get_ssl_category();
  return invalid_argument(option + " " + file + ": " + ec.message() +
                          (was_read ? "; it must hold " + wanted : ""));
}

Status check_tls_config(const TlsConfig& config) {
  if (config.certfile.empty()) {
    for (const std::string* other : {&config.keyfile, &config.ca_certs}) {
      if (!other->empty()) {
        return invalid_argument("--ssl-keyfile and --ssl-ca-certs need --ssl-certfile");
      }
    }
    if (config.cert_reqs != 0) return invalid_argument("--ssl-cert-reqs needs --ssl-certfile");
    return {};
  }
  if (config.cert_reqs < 0 || config.cert_reqs > 2) {
    return invalid_argument("--ssl-cert-reqs must be 0 (none), 1 (optional) or 2 (required)");
  }
  if (config.cert_reqs != 0 && config.ca_certs.empty()) {
    return invalid_argument("--ssl-cert-reqs " + std::to_string(config.cert_reqs) +
                            " needs --ssl-ca-certs, the authorities of the clients' certificates");
  }
  return {};
}

Status load_files(ssl::context& context, const TlsConfig& config) {
  error_code ec;
  context.set_password_callback([password = config.keyfile_password](
                                    size_t, ssl::context::password_purpose) { return password; },
                                ec);
  context.use_certificate_chain_file(config.certfile, ec);
  if (ec) {
    return file_error("--ssl-certfile", config.certfile, ec, "a certificate chain in PEM format");
  }
  const bool own_key = !config.keyfile.empty();
  const std::string& keyfile = own_key ? config.keyfile : config.certfile;
  context.use_private_key_file(keyfile, ssl::context::pem, ec);
  if (ec && own_key) {
    return file_error("--ssl-keyfile", keyfile, ec,
                      "the certificate's private key in PEM format, which "
                      "--ssl-keyfile-password opens");
  }
  if (ec) {
    return file_error("--ssl-certfile", keyfile, ec,
                      "the private key too, which --ssl-keyfile names otherwise");
  }
  if (SSL_CTX_check_private_key(context.native_handle()) != 1) {
    return invalid_argument("the key " + keyfile + " does not belong to the certificate " +
                            config.certfile);
  }
  if (config.ca_certs.empty()) return {};
  context.load_verify_file(config.ca_certs, ec);
  if (ec) return file_error("--ssl-ca-certs", config.ca_certs, ec, "certificates in PEM format");
  // The names that clients choose their certificate by.
  SSL_CTX_set_client_CA_list(context.native_handle(),
                             SSL_load_client_CA_file(config.ca_certs.c_str()));
  return {};
}

}  // namespace

Result<std::shared_ptr<ssl::context>> make_tls_context(const TlsConfig& config) {
  FT_RETURN_IF_ERROR(check_tls_config(config));
  if (config.certfile.empty()) return std::shared_ptr<ssl::context>();
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  SSL_CTX_set_options(context->native_handle(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                                    SSL_OP_CIPHER_SERVER_PREFERENCE);
  // Sessions resume only for a context with a name, and fail loudly without one where clients show
  // certificates.
  constexpr unsigned char kName[] = "foretoken";
  SSL_CTX_set_session_id_context(context->native_handle(), kName, sizeof kName - 1);
  FT_RETURN_IF_ERROR(load_files(*context, config));
  int verify = ssl::verify_none;
  if (config.cert_reqs >= 1) verify = ssl::verify_peer;
  if (config.cert_reqs == 2) verify |= ssl::verify_fail_if_no_peer_cert;
  error_code ec;
  context->set_verify_mode(verify, ec);
  if (ec) return invalid_argument("--ssl-cert-reqs: " + ec.message());
  return context;
}

}  // namespace foretoken::http
