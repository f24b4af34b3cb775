//! A request with its secrets filled in and signed, ready to be sent.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Method;
use http::header::{HeaderMap, HeaderName, HeaderValue, USER_AGENT};

use crate::bindings::v0_2::sink::latido::plugin::http::{
    BodyPart, Header, HttpError, Part, Request, Signature, SignatureForm,
};
use crate::web::HttpGrant;

/// Bytes of an address, and of all headers: what servers commonly accept.
const URL_MAX: usize = 8 << 10;
const HEADERS_MAX: usize = 32 << 10;

/// Headers that tell how a message is carried. They are the host's: a plugin that sets them could smuggle a request.
const HOSTS_OWN: [&str; 9] =
    ["host", "connection", "content-length", "expect", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"];

/// What latido calls itself.
const AGENT: &str = concat!("latido/", env!("CARGO_PKG_VERSION"));

/// A request as it goes out.
#[derive(Clone, Debug)]
pub(super) struct Filled {
    pub(super) method: Method,
    pub(super) url: String,
    /// a secret may be a part of its origin
    pub(super) is_origin_secret: bool,
    pub(super) headers: HeaderMap,
    /// headers that hold a secret or a signature made with one
    pub(super) secret_headers: Vec<HeaderName>,
    pub(super) body: Bytes,
    pub(super) is_body_secret: bool,
}

/// Puts a request together.
pub(super) async fn fill(request: Request, grant: &HttpGrant, body_max: usize) -> Result<Filled, HttpError> {
    let Request { method, url, headers, body, signature, within: _, redirects: _ } = request;
    let method = Method::from_bytes(method.as_bytes()).map_err(|_| failed("the method is no word"))?;
    let is_origin_secret = may_be_in_origin(&url);
    let url = joined(&url, grant).await?;
    if url.len() > URL_MAX {
        return Err(HttpError::TooLarge);
    }
    let mut filled = Filled {
        method,
        url,
        is_origin_secret,
        headers: HeaderMap::new(),
        secret_headers: Vec::new(),
        body: Bytes::new(),
        is_body_secret: false,
    };
    filled.headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    let mut size = 0;
    for Header { name, value } in headers {
        let is_secret = has_secret(&value);
        let value = joined(&value, grant).await?;
        size += name.len() + value.len();
        if size > HEADERS_MAX {
            return Err(HttpError::TooLarge);
        }
        filled.set_header(&name, &value, is_secret)?;
    }
    filled.fill_body(&body, grant, body_max).await?;
    if let Some(signature) = signature {
        filled.sign(&signature, grant).await?;
    }
    Ok(filled)
}

impl Filled {
    fn set_header(&mut self, name: &str, value: &str, is_secret: bool) -> Result<(), HttpError> {
        let lower = name.to_ascii_lowercase();
        if HOSTS_OWN.contains(&lower.as_str()) || lower.starts_with("proxy-") {
            return Err(failed(&format!("the header `{name}` is set by the host alone")));
        }
        let name = HeaderName::from_bytes(lower.as_bytes()).map_err(|_| failed(&format!("`{name}` is no header")))?;
        let mut value =
            HeaderValue::from_str(value).map_err(|_| failed(&format!("the header `{name}` cannot have that value")))?;
        value.set_sensitive(is_secret);
        if is_secret {
            self.secret_headers.push(name.clone());
        }
        self.headers.insert(name, value);
        Ok(())
    }

    async fn fill_body(&mut self, parts: &[BodyPart], grant: &HttpGrant, body_max: usize) -> Result<(), HttpError> {
        let mut body = Vec::new();
        for part in parts {
            match part {
                BodyPart::Text(text) => body.extend_from_slice(text.as_bytes()),
                BodyPart::Bytes(bytes) => body.extend_from_slice(bytes),
                BodyPart::Secret(name) => {
                    self.is_body_secret = true;
                    body.extend_from_slice(secret(name, grant).await?.as_bytes());
                }
            }
            if body.len() > body_max {
                return Err(HttpError::TooLarge);
            }
        }
        self.body = body.into();
        Ok(())
    }

    async fn sign(&mut self, signature: &Signature, grant: &HttpGrant) -> Result<(), HttpError> {
        if signature.algorithm != "hmac-sha256" {
            return Err(failed(&format!("the algorithm `{}` is not known; `hmac-sha256` is", signature.algorithm)));
        }
        let key = secret(&signature.secret, grant).await?;
        let mut context = ring::hmac::Context::with_key(&ring::hmac::Key::new(ring::hmac::HMAC_SHA256, key.as_bytes()));
        context.update(signature.before.as_bytes());
        context.update(&self.body);
        let tag = context.sign();
        let written = match signature.form {
            SignatureForm::Hex => tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect(),
            SignatureForm::Base64 => STANDARD.encode(tag.as_ref()),
        };
        self.set_header(&signature.header, &format!("{}{written}", signature.prefix), true)
    }
}

fn has_secret(parts: &[Part]) -> bool {
    parts.iter().any(|part| !matches!(part, Part::Plain(_)))
}

/// Whether a secret may be a part of an address's origin: it comes before the plain text has ended that.
fn may_be_in_origin(url: &[Part]) -> bool {
    let plain = |part: &Part| if let Part::Plain(plain) = part { Some(plain.clone()) } else { None };
    let begins: String = url.iter().map_while(plain).collect();
    let is_over = begins.split_once("://").is_some_and(|(_, rest)| rest.contains(['/', '?', '#']));
    has_secret(url) && !is_over
}

async fn joined(parts: &[Part], grant: &HttpGrant) -> Result<String, HttpError> {
    let mut text = String::new();
    for part in parts {
        match part {
            Part::Plain(plain) => text.push_str(plain),
            Part::Secret(name) => text.push_str(&secret(name, grant).await?),
            Part::Basic(basic) => {
                let credentials = format!("{}:{}", basic.user, secret(&basic.secret, grant).await?);
                text.push_str(&format!("Basic {}", STANDARD.encode(credentials)));
            }
        }
    }
    Ok(text)
}

/// The value of a secret at this moment, so that a changed one needs no restart.
async fn secret(name: &str, grant: &HttpGrant) -> Result<String, HttpError> {
    let Some(source) = grant.secrets.get(name) else {
        return Err(HttpError::Denied(format!("the secret `{name}` is not granted")));
    };
    let source = source.clone();
    let read = tokio::task::spawn_blocking(move || source.value()).await;
    match read {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(why)) => Err(failed(&format!("the secret `{name}` cannot be read: {why}"))),
        Err(_) => Err(failed(&format!("the secret `{name}` cannot be read"))),
    }
}

fn failed(why: &str) -> HttpError {
    HttpError::Failed(why.to_owned())
}
