#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <thread>

#include "net/client.h"

namespace foretoken::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// A key and a certificate that it signed itself, for "localhost".
void use_own_certificate(asio::ssl::context& context) {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, key);
  X509_NAME* name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
  X509_set_issuer_name(certificate, name);
  X509_sign(certificate, key, EVP_sha256());
  SSL_CTX_use_certificate(context.native_handle(), certificate);
  SSL_CTX_use_PrivateKey(context.native_handle(), key);
  X509_free(certificate);
  EVP_PKEY_free(key);
}

// Answers `num_connections` connections, one after another, each with as many answers as it asks.
class TlsServer {
 public:
  explicit TlsServer(int num_connections)
      : context_(asio::ssl::context::tls_server),
        acceptor_(io_, tcp::endpoint(asio::ip::address_v4::loopback(), 0)) {
    use_own_certificate(context_);
    thread_ = std::thread([this, num_connections] {
      for (int i = 0; i < num_connections; ++i) serve();
    });
  }
  ~TlsServer() { thread_.join(); }

  std::string url() const {
    return "https://localhost:" + std::to_string(acceptor_.local_endpoint().port());
  }

 private:
  void serve() {
    asio::ssl::stream<tcp::socket> stream(acceptor_.accept(), context_);
    boost::system::error_code error;
    stream.handshake(asio::ssl::stream_base::server, error);
    asio::streambuf buffer;
    while (!error) {
      buffer.consume(asio::read_until(stream, buffer, "\r\n\r\n", error));
      const std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret";
      if (!error) asio::write(stream, asio::buffer(answer), error);
    }
  }

  asio::io_context io_;
  asio::ssl::context context_;
  tcp::acceptor acceptor_;
  std::thread thread_;
};

Status ask_status(Client& client, std::string* body) {
  Status end;
  ClientHandlers handlers;
  handlers.on_body = [=](std::string_view bytes) { *body += bytes; };
  handlers.on_end = [&](const Status& status) { end = status; };
  client.send({"GET", "/", {}, "", std::chrono::minutes(2)}, std::move(handlers));
  client.run();
  return end;
}

TEST(HttpClientTls, AnUnknownCertificateIsRefused) {
  TlsServer server(1);
  // The server listens on IPv4 only; ::1 refuses before.
  const auto client = Client::create(parse_url(server.url()).value(), {}).value();
  std::string body;
  const Status status = ask_status(*client, &body);
  EXPECT_EQ(body, "");
  EXPECT_NE(status.message().find("SSL certificate"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("--insecure"), std::string::npos);
}

TEST(HttpClientTls, InsecureTakesIt) {
  TlsServer server(1);
  ClientOptions options;
  options.verify_tls = false;
  const auto client = Client::create(parse_url(server.url()).value(), options).value();
  std::string body;
  for (int i = 0; i < 3; ++i) {
    const Status status = ask_status(*client, &body);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  EXPECT_EQ(body, "secretsecretsecret");
  EXPECT_EQ(client->num_connections(), 1u);
}

}  // namespace
}  // namespace foretoken::net
