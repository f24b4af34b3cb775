//! One request and its answer over a connection of its own, to an address that was judged.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::header::HOST;
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Body as _;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;

use super::filled::Filled;
use super::target::Target;
use crate::bindings::v0_2::sink::latido::plugin::http::HttpError;

/// Headers of an answer, and the bytes in which all of them have to fit.
const HEADERS_MAX: usize = 100;
const HEAD_MAX: usize = 64 << 10;

/// An answer, read whole.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// Encryption, set up at its first use: reading the machine's certificates takes a while.
pub(crate) struct Tls {
    ca: Option<PathBuf>,
    config: OnceCell<Arc<ClientConfig>>,
}

impl Tls {
    /// With the certificates that the machine trusts, or those of a file alone.
    pub(crate) fn new(ca: Option<PathBuf>) -> Self {
        Self { ca, config: OnceCell::new() }
    }

    async fn config(&self) -> Result<Arc<ClientConfig>, HttpError> {
        let config = self.config.get_or_try_init(|| async {
            let ca = self.ca.clone();
            tokio::task::spawn_blocking(move || config(ca.as_deref())).await.map_err(io::Error::other)?
        });
        config.await.cloned().map_err(|error| HttpError::Failed(format!("certificates cannot be read: {error}")))
    }
}

fn config(ca: Option<&Path>) -> io::Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = ca {
        for certificate in CertificateDer::pem_file_iter(path).map_err(io::Error::other)? {
            roots.add(certificate.map_err(io::Error::other)?).map_err(io::Error::other)?;
        }
    } else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    if roots.is_empty() {
        return Err(io::Error::other("there is none; install the package ca-certificates, or grant `http.ca`"));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().map_err(io::Error::other)?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

/// Sends a request and reads its answer. Dropped, it leaves nothing behind: the connection is closed.
pub(super) async fn exchange(
    target: &Target,
    addresses: &[SocketAddr],
    request: &Filled,
    tls: &Tls,
    body_max: usize,
) -> Result<Answer, HttpError> {
    let stream = dial(addresses).await.map_err(|error| unreachable(target, &error))?;
    if !target.is_encrypted {
        return over(stream, target, request, body_max).await;
    }
    let name = ServerName::try_from(target.name().to_owned())
        .map_err(|_| HttpError::Failed("the address names no host that a certificate can have".to_owned()))?;
    let connector = TlsConnector::from(tls.config().await?);
    let stream = connector.connect(name, stream).await.map_err(|error| unreachable(target, &error))?;
    over(stream, target, request, body_max).await
}

/// Connects to the first address that answers.
async fn dial(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn over(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send,
    target: &Target,
    filled: &Filled,
    body_max: usize,
) -> Result<Answer, HttpError> {
    let broken = |error: &dyn std::error::Error| unreachable(target, error);
    let mut request = http::Request::new(Full::new(filled.body.clone()));
    *request.method_mut() = filled.method.clone();
    *request.uri_mut() = target.path.parse().map_err(|_| HttpError::Failed("the address cannot be read".to_owned()))?;
    *request.headers_mut() = filled.headers.clone();
    let host = HeaderValue::from_str(&target.authority());
    request.headers_mut().insert(HOST, host.map_err(|_| HttpError::Failed("the host is no name".to_owned()))?);

    let mut builder = http1::Builder::new();
    builder.max_headers(HEADERS_MAX).max_buf_size(HEAD_MAX);
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(|error| broken(&error))?;
    let answer = async {
        let response = sender.send_request(request).await.map_err(|error| broken(&error))?;
        let (head, mut body) = response.into_parts();
        if body.size_hint().lower() > body_max as u64 {
            return Err(HttpError::TooLarge);
        }
        let mut bytes = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| broken(&error))?;
            let Some(data) = frame.data_ref() else { continue };
            if bytes.len() + data.len() > body_max {
                return Err(HttpError::TooLarge);
            }
            bytes.extend_from_slice(data);
        }
        Ok(Answer { status: head.status, headers: head.headers, body: bytes })
    };
    tokio::pin!(answer);
    tokio::pin!(connection);
    tokio::select! {
        biased;
        answer = &mut answer => answer,
        // The connection has ended; what was read of it is still to be taken.
        _ended = &mut connection => answer.await,
    }
}

/// Says why nobody answered, with the causes, and without the address: it may hold a secret.
fn unreachable(target: &Target, error: &dyn std::error::Error) -> HttpError {
    let mut why = format!("{}: {error}", target.origin());
    let mut cause = error.source();
    while let Some(error) = cause {
        why.push_str(&format!(": {error}"));
        cause = error.source();
    }
    HttpError::Unreachable(why)
}
