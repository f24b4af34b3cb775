//! A small HTTP server that answers as a test says, and remembers what it heard.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// What is answered to a request.
pub(crate) enum Answer {
    /// These bytes, after which the connection ends.
    Bytes(Vec<u8>),
    /// A body without an end.
    Endless,
    /// A byte now and then.
    Drip,
}

impl Answer {
    pub(crate) fn text(status: u16, body: &str) -> Self {
        let length = body.len();
        Self::Bytes(format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n\r\n{body}").into_bytes())
    }

    pub(crate) fn redirect(status: u16, to: &str) -> Self {
        Self::Bytes(format!("HTTP/1.1 {status} X\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n").into_bytes())
    }
}

pub(crate) struct Server {
    address: &'static str,
    pub(crate) port: u16,
    heard: Arc<Mutex<Vec<String>>>,
}

type Decide = Arc<dyn Fn(&str) -> Answer + Send + Sync>;

impl Server {
    /// Listens on a port of its own, and decides its answer by what it hears: the head and the body.
    pub(crate) async fn start(address: &'static str, decide: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Self {
        Self::serve(address, Arc::new(decide), None).await
    }

    /// The same over TLS; it answers `encrypted`.
    pub(crate) async fn encrypted(address: &'static str, certificate: &Path, key: &Path) -> Self {
        let chain = CertificateDer::pem_file_iter(certificate).unwrap().map(Result::unwrap).collect();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, PrivateKeyDer::from_pem_file(key).unwrap())
            .unwrap();
        Self::serve(address, Arc::new(|_| Answer::text(200, "encrypted")), Some(TlsAcceptor::from(Arc::new(config))))
            .await
    }

    async fn serve(address: &'static str, decide: Decide, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hears = Arc::clone(&heard);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (decide, hears, tls) = (Arc::clone(&decide), Arc::clone(&hears), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => answer(stream, &*decide, &hears).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                answer(stream, &*decide, &hears).await;
                            }
                        }
                    }
                });
            }
        });
        Self { address, port, heard }
    }

    pub(crate) fn origin(&self) -> String {
        format!("http://{}:{}", self.address, self.port)
    }

    /// Every request so far: its head and its body.
    pub(crate) fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}

async fn answer(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    decide: &(dyn Fn(&str) -> Answer + Send + Sync),
    hears: &Mutex<Vec<String>>,
) {
    let Some(request) = read(&mut stream).await else { return };
    let answer = decide(&request);
    hears.lock().unwrap().push(request);
    // Whoever asked may have hung up: that is what some of these tests are about.
    match answer {
        Answer::Bytes(bytes) => {
            let _gone = stream.write_all(&bytes).await;
        }
        Answer::Endless => {
            let _gone = stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
            while stream.write_all(b"400\r\n").await.is_ok()
                && stream.write_all(&[b'x'; 1024]).await.is_ok()
                && stream.write_all(b"\r\n").await.is_ok()
            {}
        }
        Answer::Drip => {
            let bytes = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n".iter().chain(std::iter::repeat(&b'x'));
            // How slow it is, is what it is for.
            let mut pace = tokio::time::interval(Duration::from_millis(20));
            for byte in bytes {
                pace.tick().await;
                if stream.write_all(&[*byte]).await.is_err() {
                    return;
                }
            }
        }
    }
    let _gone = stream.shutdown().await;
}

/// Reads one request whole.
async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return Some(text);
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}
