//! TLS: own authorities, client certificates, and refusals that prove that nothing was sent.

use std::path::PathBuf;
use std::sync::Arc;

use delivery::{Handed, HttpSettings, HttpUrl, TallyonceTarget};
use domain::Delivery;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::http::settings;
use crate::support::{Play, hand, pack, push, read_request, recorded};

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/tls").join(name)
}

fn certificates(name: &str) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_file_iter(file(name)).unwrap().map(Result::unwrap).collect()
}

/// A server that records one push over TLS, from clients with a certificate only if `mutual`.
async fn tls_server(mutual: bool) -> HttpUrl {
    let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
    let builder = ServerConfig::builder();
    let config = if mutual {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates("ca.pem"));
        builder.with_client_cert_verifier(WebPkiClientVerifier::builder(Arc::new(roots)).build().unwrap())
    } else {
        builder.with_no_client_auth()
    };
    let config = config.with_single_cert(certificates("server.pem"), key).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = HttpUrl::parse(&format!("https://localhost:{}", listener.local_addr().unwrap().port())).unwrap();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        // A refused handshake is what some of these tests are about.
        let Ok(mut stream) = TlsAcceptor::from(Arc::new(config)).accept(stream).await else { return };
        read_request(&mut stream).await;
        let Play::Answer(bytes) = recorded(&pack(push()).header) else { unreachable!() };
        stream.write_all(&bytes).await.unwrap();
        stream.shutdown().await.unwrap();
    });
    url
}

async fn deliver(mutual: bool, change: impl FnOnce(HttpSettings) -> HttpSettings) -> Delivery<Handed> {
    let settings = change(settings());
    let url = tls_server(mutual).await;
    hand(&TallyonceTarget::new(url, &settings).unwrap(), &pack(push())).await
}

fn trusting(settings: HttpSettings) -> HttpSettings {
    HttpSettings { ca_file: Some(file("ca.pem")), ..settings }
}

#[tokio::test]
async fn an_own_authority_is_trusted_where_it_is_given_and_nowhere_else() {
    assert!(matches!(deliver(false, trusting).await, Delivery::Recorded(_)));
    let Delivery::NotSent(cause) = deliver(false, |s| s).await else { panic!("trusted without its authority") };
    assert!(cause.what.contains("UnknownIssuer"), "{}", cause.what);
}

#[tokio::test]
async fn a_client_certificate_is_shown_from_one_file_or_from_two() {
    let cert =
        |s| HttpSettings { client_cert: Some(file("client.pem")), client_key: Some(file("client.key")), ..trusting(s) };
    assert!(matches!(deliver(true, cert).await, Delivery::Recorded(_)));
    let folder = tempfile::tempdir().unwrap();
    let both = folder.path().join("both.pem");
    let pem = [std::fs::read(file("client.key")).unwrap(), std::fs::read(file("client.pem")).unwrap()].concat();
    std::fs::write(&both, pem).unwrap();
    let one = |s| HttpSettings { client_cert: Some(both.clone()), ..trusting(s) };
    assert!(matches!(deliver(true, one).await, Delivery::Recorded(_)));
}

#[tokio::test]
async fn a_client_refused_for_its_certificate_sent_nothing() {
    // TLS 1.3 tells the client only after it believes that the connection stands.
    let refused = deliver(true, trusting).await;
    let Delivery::NotSent(cause) = refused else { panic!("{refused:?}") };
    assert!(cause.what.contains("ertificateRequired"), "{}", cause.what);
}
