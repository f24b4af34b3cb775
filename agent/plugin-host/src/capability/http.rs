//! `http`: requests to the origins that the operator granted. There is one way out, and everything passes it: each
//! address, also that of a redirect, is judged by its origin first and by what its name stands for second, and only an
//! address that was judged is dialled.

mod addresses;
mod exchange;
mod filled;
mod target;

pub use addresses::Network;
pub use target::origin;

use std::sync::Arc;
use std::time::Duration;

use ::http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, LOCATION};
use ::http::{Method, StatusCode};

use crate::bindings::v0_2::sink::latido::plugin::http::{Host, HttpError, Request, Response, ResponseHeader};
use crate::guest::Guest;
use crate::spec::Limits;
use crate::web::HttpGrant;
use exchange::Tls;
use filled::Filled;
use target::Target;

/// Redirects that are followed at most, whatever a plugin asks for: browsers follow 20.
const REDIRECTS_MAX: u8 = 10;

/// What one plugin may reach.
pub(crate) struct Client {
    grant: HttpGrant,
    within: Duration,
    body_max: usize,
    tls: Tls,
}

impl Client {
    pub(crate) fn new(grant: HttpGrant, limits: &Limits) -> Self {
        let tls = Tls::new(grant.ca.clone());
        Self { grant, within: limits.http, body_max: limits.http_body, tls }
    }

    async fn send(&self, request: Request) -> Result<Response, HttpError> {
        let mut left = request.redirects.min(REDIRECTS_MAX);
        let mut filled = filled::fill(request, &self.grant, self.body_max).await?;
        loop {
            let target = Target::parse(&filled.url)?;
            self.judge(&target, filled.is_origin_secret)?;
            let addresses = self.addresses(&target).await?;
            let answer = exchange::exchange(&target, &addresses, &filled, &self.tls, self.body_max).await?;
            let Some(next) = redirect(&answer, &target)? else { return Ok(readable(answer)) };
            if left == 0 {
                return Ok(readable(answer));
            }
            left -= 1;
            filled = followed(filled, answer.status, &target, next)?;
        }
    }

    /// Judges an address by its text: its origin has to be one that was granted. Where the host filled a secret in, the plugin
    /// is not told which origin it was: it may have put the secret there to read it in the answer.
    fn judge(&self, target: &Target, is_secret: bool) -> Result<(), HttpError> {
        let origin = target.origin();
        if self.grant.origins.contains(&origin) {
            return Ok(());
        }
        let shown = if is_secret { "of an address with a secret".to_owned() } else { format!("`{origin}`") };
        Err(HttpError::Denied(format!("the origin {shown} is not granted")))
    }

    /// What the name stands for, as far as it may be dialled.
    async fn addresses(&self, target: &Target) -> Result<Vec<std::net::SocketAddr>, HttpError> {
        let unreachable = |why: String| HttpError::Unreachable(format!("{}: {why}", target.origin()));
        let found = self.grant.names.look_up(target.name(), target.port).await;
        let found = found.map_err(|error| unreachable(error.to_string()))?;
        let Some(first) = found.first().copied() else { return Err(unreachable("the name has no address".to_owned())) };
        let may_be_dialled = |address: &std::net::SocketAddr| {
            addresses::is_public(address.ip()) || self.grant.private.iter().any(|network| network.holds(address.ip()))
        };
        let allowed: Vec<_> = found.into_iter().filter(may_be_dialled).collect();
        if allowed.is_empty() {
            let what =
                format!("{} stands for {}, which is no public address and not granted", target.name(), first.ip());
            return Err(HttpError::Denied(what));
        }
        Ok(allowed)
    }
}

/// Where an answer sends to, if it is a redirect that can be followed.
fn redirect(answer: &exchange::Answer, target: &Target) -> Result<Option<String>, HttpError> {
    let follows = matches!(
        answer.status,
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    );
    let Some(location) = answer.headers.get(LOCATION).filter(|_| follows) else { return Ok(None) };
    let location =
        location.to_str().map_err(|_| HttpError::Failed("the redirect's address is not ASCII".to_owned()))?;
    Ok(Some(target.joined(location)))
}

/// The request that follows a redirect. What is meant for one origin is not sent to another.
fn followed(mut request: Filled, status: StatusCode, from: &Target, to: String) -> Result<Filled, HttpError> {
    let keeps_method = matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    if !keeps_method && request.method != Method::GET && request.method != Method::HEAD {
        request.method = Method::GET;
        request.body = bytes::Bytes::new();
        request.is_body_secret = false;
        request.headers.remove(CONTENT_TYPE);
    }
    let target = Target::parse(&to)?;
    if target.origin() != from.origin() {
        if request.is_body_secret {
            let what = format!("a redirect to `{}` would carry a secret to another origin", target.origin());
            return Err(HttpError::Denied(what));
        }
        for name in request.secret_headers.drain(..).chain([AUTHORIZATION, COOKIE]) {
            request.headers.remove(name);
        }
    }
    (request.url, request.is_origin_secret) = (to, false);
    Ok(request)
}

fn readable(answer: exchange::Answer) -> Response {
    let header = |(name, value): (&::http::HeaderName, &::http::HeaderValue)| ResponseHeader {
        name: name.as_str().to_owned(),
        value: String::from_utf8_lossy(value.as_bytes()).into_owned(),
    };
    Response { status: answer.status.as_u16(), headers: answer.headers.iter().map(header).collect(), body: answer.body }
}

impl Host for Guest {
    async fn send(&mut self, request: Request) -> Result<Response, HttpError> {
        let Some(watch) = self.watch() else { return send_one(self, request).await };
        let arguments = crate::probe::request(&request);
        watch.around("http", "send", arguments, send_one(self, request)).await
    }
}

async fn send_one(guest: &mut Guest, request: Request) -> Result<Response, HttpError> {
    let Some(client) = guest.capabilities.http.as_ref().map(Arc::clone) else {
        return Err(HttpError::Denied("`http` is not granted".to_owned()));
    };
    let asked = request.within.map_or(client.within, Duration::from_millis);
    let within = asked.min(client.within);
    tokio::time::timeout(within, client.send(request)).await.unwrap_or(Err(HttpError::Timeout))
}
