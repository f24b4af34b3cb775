//! What a server's answer means for what was sent.

use super::bindings::exports::latido::plugin::sink::PluginError;
use super::bindings::latido::plugin::http::{HttpError, Response};

/// How much of an answer's text is told.
const TOLD_MAX: usize = 300;

/// How long a server is left alone that says it is too much and not for how long, in milliseconds.
const TOO_MUCH_MS: u64 = 5_000;

/// What became of a request.
#[derive(Debug, PartialEq)]
pub(crate) enum Meaning {
    /// The server has it.
    Taken,
    /// The server will never take it: why.
    Refused(String),
}

/// Says what an answer means. An error is one of the plugin's: when to try again, or what was denied.
pub(crate) fn meaning(answered: Result<Response, HttpError>) -> Result<Meaning, PluginError> {
    let response = match answered {
        Ok(response) => response,
        Err(HttpError::Denied(what)) => return Err(PluginError::Denied(what)),
        Err(HttpError::Timeout) => return Err(PluginError::Retry("the server did not answer in time".into())),
        Err(HttpError::Unreachable(why)) => return Err(PluginError::Retry(why)),
        Err(HttpError::Failed(why)) => return Err(PluginError::Retry(why)),
        // What was sent is bounded; an answer without an end says nothing about whether it was taken.
        Err(HttpError::TooLarge) => return Err(PluginError::Retry("the request or its answer is too large".into())),
    };
    let told = match words(&response.body).trim() {
        "" => format!("status {}", response.status),
        words => format!("status {}: {words}", response.status),
    };
    match response.status {
        200..=299 => Ok(Meaning::Taken),
        // The message itself is at fault: it would be refused for ever.
        400 | 413 | 415 | 422 => Ok(Meaning::Refused(told)),
        429 | 503 => match retry_after(&response) {
            Some(ms) => Err(PluginError::RetryAfter(ms)),
            None if response.status == 429 => Err(PluginError::RetryAfter(TOO_MUCH_MS)),
            None => Err(PluginError::Retry(told)),
        },
        // A key that was withdrawn, an address that is gone, a server in trouble: somebody can mend each of these.
        _ => Err(PluginError::Retry(told)),
    }
}

/// For how many milliseconds the server wants to be left alone: by its header, or as Telegram and Discord say it.
fn retry_after(response: &Response) -> Option<u64> {
    let header = response.headers.iter().find(|header| header.name == "retry-after");
    let seconds = header.and_then(|header| header.value.trim().parse().ok()).or_else(|| {
        let body: serde_json::Value = serde_json::from_slice(&response.body).ok()?;
        [body.pointer("/parameters/retry_after"), body.pointer("/retry_after")].into_iter().flatten().next()?.as_f64()
    })?;
    (seconds >= 0.0).then_some((seconds * 1000.0) as u64)
}

/// The beginning of an answer as one line.
fn words(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).take(TOLD_MAX).collect()
}
