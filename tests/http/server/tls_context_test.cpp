#include "http/server/tls_context.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>

#include "http/server/test_server.h"
#include "support/scratch_folder.h"

namespace foretoken::http {
namespace {

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Context = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;

// A self-signed certificate, which is its own authority.
struct Identity {
  Key key{EVP_EC_gen("P-256"), &EVP_PKEY_free};
  Certificate certificate{X509_new(), &X509_free};

  explicit Identity(const char* name) {
    X509* x509 = certificate.get();
    X509_set_version(x509, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x509), 1);
    X509_gmtime_adj(X509_getm_notBefore(x509), -60);
    X509_gmtime_adj(X509_getm_notAfter(x509), 3600);
    X509_set_pubkey(x509, key.get());
    X509_NAME* subject = X509_get_subject_name(x509);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name), -1, -1, 0);
    X509_set_issuer_name(x509, subject);
    X509_EXTENSION* authority =
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_basic_constraints, "critical,CA:TRUE");
    X509_add_ext(x509, authority, -1);
    X509_EXTENSION_free(authority);
    X509_sign(x509, key.get(), EVP_sha256());
  }
  void write_certificate(const std::string& file) const {
    std::FILE* out = std::fopen(file.c_str(), "w");
    PEM_write_X509(out, certificate.get());
    std::fclose(out);
  }
  void write_key(const std::string& file, const char* password = nullptr) const {
    std::FILE* out = std::fopen(file.c_str(), "w");
    PEM_write_PrivateKey(out, key.get(), password != nullptr ? EVP_aes_128_cbc() : nullptr, nullptr,
                         0, nullptr, const_cast<char*>(password));
    std::fclose(out);
  }
};

class HttpTls : public ::testing::Test {
 protected:
  void SetUp() override {
    server_.write_certificate(file("cert"));
    server_.write_key(file("key"));
    server_.write_key(file("locked"), "open sesame");
    client_.write_certificate(file("client"));
    tls_.certfile = file("cert");
    tls_.keyfile = file("key");
  }
  std::string file(const std::string& name) const { return folder_.file(name + ".pem"); }
  std::string problem() const {
    const auto context = make_tls_context(tls_);
    return context.ok() ? std::string() : context.status().message();
  }
  Context client_context() const {
    Context context(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), server_.certificate.get());
    return context;
  }
  ServerConfig config() const {
    ServerConfig config;
    config.tls = tls_;
    return config;
  }

  Identity server_{"server"};
  Identity client_{"client"};
  const test::ScratchFolder folder_;
  TlsConfig tls_;
};

TEST_F(HttpTls, FilesThatDoNotFitAreNamed) {
  EXPECT_EQ(problem(), "");
  tls_.certfile = file("missing");
  EXPECT_NE(problem().find("--ssl-certfile " + file("missing")), std::string::npos);
  EXPECT_EQ(problem().find("must hold"), std::string::npos) << problem();
  tls_.certfile = file("client");
  EXPECT_NE(problem(), "");  // the key of another certificate
  tls_.certfile = file("cert");
  std::ofstream(file("text")) << "not a key";
  tls_.keyfile = file("text");
  EXPECT_NE(problem().find("--ssl-keyfile"), std::string::npos);
  tls_.keyfile = file("locked");
  EXPECT_NE(problem().find("--ssl-keyfile-password"), std::string::npos) << problem();
  tls_.keyfile = "";
  EXPECT_NE(problem().find("the private key too"), std::string::npos) << problem();
  tls_.keyfile = file("locked");
  tls_.keyfile_password = "open sesame";
  EXPECT_EQ(problem(), "");
  tls_.cert_reqs = 2;
  EXPECT_NE(problem().find("--ssl-ca-certs"), std::string::npos);
  tls_.cert_reqs = 3;
  EXPECT_NE(problem().find("--ssl-cert-reqs"), std::string::npos);
  tls_ = {};
  EXPECT_EQ(problem(), "");
  tls_.keyfile = file("key");
  EXPECT_NE(problem().find("--ssl-certfile"), std::string::npos);
}

TEST_F(HttpTls, Serves) {
  TestServer server(config());
  EXPECT_TRUE(server->address().starts_with("https://127.0.0.1:"));
  const Context context = client_context();
  HttpClient client = server.connect();
  ASSERT_TRUE(client.start_tls(context.get()));
  EXPECT_EQ(client.ask(get("/hello")).body, "hello");
  const std::string body(size_t{2} << 20, 'x');
  EXPECT_TRUE(client.ask(post("/echo", body)).body == body);
  ASSERT_TRUE(client.send(get("/held")));
  const auto held = server.held().take();
  ASSERT_NE(held, nullptr);
  held->begin(200, "text/event-stream");
  std::string expected;
  for (int i = 0; i < 500; ++i) {
    held->write(std::to_string(i) + "\n");
    expected += std::to_string(i) + "\n";
  }
  held->end();
  EXPECT_EQ(client.read_answer().body, expected);
  EXPECT_EQ(client.ask(get("/hello", "Connection: close\r\n")).status, 200);
  EXPECT_EQ(client.read_some(), "");  // ended with close_notify, not with a reset
}

TEST_F(HttpTls, AClientThatGoesIsNoticed) {
  TestServer server(config());
  const Context context = client_context();
  HttpClient client = server.connect();
  ASSERT_TRUE(client.start_tls(context.get()));
  ASSERT_TRUE(client.send(get("/held")));
  const auto held = server.held().take();
  ASSERT_NE(held, nullptr);
  Gate gone;
  held->when_gone([&] { gone.open(); });
  client.close();
  EXPECT_TRUE(gone.wait());
  EXPECT_TRUE(eventually([&] { return server->counters().open_connections == 0; }));
}

TEST_F(HttpTls, OthersAreNotServed) {
  ServerConfig quick = config();
  quick.timeouts.connect = std::chrono::milliseconds(300);
  TestServer server(std::move(quick));
  HttpClient plain = server.connect();
  plain.send(get("/hello"));
  EXPECT_TRUE(plain.reaches_end());
  HttpClient silent = server.connect();  // never begins its handshake
  EXPECT_TRUE(silent.reaches_end());
  HttpClient busy = server.connect();
  Gate stopped;
  std::thread stopper([&] {
    server->stop();  // ends a handshake that hangs
    stopped.open();
  });
  EXPECT_TRUE(stopped.wait());
  stopper.join();
}

TEST_F(HttpTls, CertificatesOfClients) {
  tls_.ca_certs = file("client");
  tls_.cert_reqs = 2;
  TestServer server(config());
  const Context without = client_context();
  HttpClient stranger = server.connect();
  // TLS 1.3: the client learns of the refusal with its first read.
  stranger.start_tls(without.get());
  EXPECT_EQ(stranger.ask(get("/hello")).status, 0);
  const Context with = client_context();
  SSL_CTX_use_certificate(with.get(), client_.certificate.get());
  SSL_CTX_use_PrivateKey(with.get(), client_.key.get());
  HttpClient known = server.connect();
  ASSERT_TRUE(known.start_tls(with.get()));
  EXPECT_EQ(known.ask(get("/hello")).body, "hello");
}

}  // namespace
}  // namespace foretoken::http
