//! An address taken apart, as far as it matters who is asked.

use http::Uri;
use http::uri::Scheme;

use crate::bindings::v0_2::sink::latido::plugin::http::HttpError;

/// An absolute address of `http` or `https`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) is_encrypted: bool,
    /// the host as it stands in the address, in lower case; an IPv6 address in its brackets
    pub(super) host: String,
    pub(super) port: u16,
    /// path and query
    pub(super) path: String,
}

impl Target {
    /// Takes an address apart. Messages do not show it: it may hold a secret.
    pub(super) fn parse(url: &str) -> Result<Self, HttpError> {
        let failed = |why: &str| HttpError::Failed(format!("the address {why}"));
        let url = url.split_once('#').map_or(url, |(url, _)| url);
        let uri: Uri = url.parse().map_err(|_| failed("cannot be read"))?;
        let is_encrypted = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            Some(scheme) if *scheme == Scheme::HTTP => false,
            Some(_) | None => return Err(failed("is neither http nor https")),
        };
        let authority = uri.authority().ok_or_else(|| failed("names no host"))?;
        if authority.as_str().contains('@') {
            return Err(failed("holds a user; credentials go into a header"));
        }
        let host = authority.host().trim_end_matches('.').to_ascii_lowercase();
        if host.is_empty() {
            return Err(failed("names no host"));
        }
        let port = authority.port_u16().unwrap_or(if is_encrypted { 443 } else { 80 });
        let path = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { is_encrypted, host, port, path })
    }

    /// What is granted: scheme, host and port, the port left out where it is the scheme's own.
    pub(super) fn origin(&self) -> String {
        let (scheme, own) = if self.is_encrypted { ("https", 443) } else { ("http", 80) };
        if self.port == own {
            format!("{scheme}://{}", self.host)
        } else {
            format!("{scheme}://{}:{}", self.host, self.port)
        }
    }

    /// The host as a name service or a certificate has it: an IPv6 address without its brackets.
    pub(super) fn name(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    /// The value of the header `host`.
    pub(super) fn authority(&self) -> String {
        let own = if self.is_encrypted { 443 } else { 80 };
        if self.port == own { self.host.clone() } else { format!("{}:{}", self.host, self.port) }
    }

    /// The absolute address that a redirect from here means.
    pub(super) fn joined(&self, location: &str) -> String {
        let scheme = if self.is_encrypted { "https:" } else { "http:" };
        if location.contains("://") {
            return location.to_owned();
        }
        if location.starts_with("//") {
            return format!("{scheme}{location}");
        }
        let here = format!("{scheme}//{}", self.authority());
        if location.starts_with('/') {
            return format!("{here}{location}");
        }
        let path = self.path.split(['?', '#']).next().unwrap_or("/");
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{here}{folder}/{location}")
    }
}

/// An origin as the operator writes it, in the form in which addresses are compared with it.
///
/// # Errors
///
/// In words, where it is none: it has a scheme, a host and perhaps a port, and nothing behind them.
pub fn origin(text: &str) -> Result<String, String> {
    let target = Target::parse(text).map_err(|_| format!("`{text}` is no origin; one is `https://example.org`"))?;
    if target.path == "/" { Ok(target.origin()) } else { Err(format!("`{text}` has a path; an origin has none")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_the_same_however_it_is_written() {
        for text in ["https://Example.org", "https://example.org:443/", "HTTPS://EXAMPLE.ORG."] {
            assert_eq!(origin(text).as_deref(), Ok("https://example.org"), "{text}");
        }
        assert_eq!(origin("http://[::1]:8080").as_deref(), Ok("http://[::1]:8080"));
        for text in ["example.org", "https://example.org/path", "ftp://example.org", "https://", "https://a@b", ""] {
            assert!(origin(text).is_err(), "{text}");
        }
    }

    #[test]
    fn no_address_passes_for_another_origin() {
        let of = |url: &str| Target::parse(url).map(|target| target.origin()).ok();
        assert_eq!(of("https://good.example@evil.example/"), None);
        assert_eq!(of("https://good.example.evil.example/").as_deref(), Some("https://good.example.evil.example"));
        assert_eq!(of("https://good.example:444/").as_deref(), Some("https://good.example:444"));
        assert_eq!(of("http://good.example/").as_deref(), Some("http://good.example"));
        assert_eq!(of("https://evil.example#@good.example/").as_deref(), Some("https://evil.example"));
        assert_eq!(of("https://evil.example\\@good.example/"), None);
        assert_eq!(of("file:///etc/passwd"), None);
    }

    #[test]
    fn a_redirect_is_read_as_a_browser_reads_it() {
        let here = Target::parse("https://a.example:8443/x/y?z").unwrap();
        for (location, meant) in [
            ("https://b.example/c", "https://b.example/c"),
            ("//b.example/c", "https://b.example/c"),
            ("/c?d", "https://a.example:8443/c?d"),
            ("c", "https://a.example:8443/x/c"),
        ] {
            assert_eq!(here.joined(location), meant);
        }
    }
}
