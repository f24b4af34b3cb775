//! Requests as the settings have them: `{"method": …, "url": [part, …], "headers": {name: [part, …]}, "body": [part, …],
//! "signature": {"secret": …, "header": …, "prefix": …, "before": …}, "within": ms, "redirects": n}`. A part is a text,
//! `{"secret": name}` or `{"basic": name}`.

use super::bindings::latido::plugin::http::{self, Basic, BodyPart, Header, Part, Request, Signature, SignatureForm};
use serde_json::Value;

/// Sends a request and tells the answer: status and body, or the error.
pub(crate) fn sent(request: &Value) -> String {
    let parts = |value: &Value| value.as_array().into_iter().flatten().map(part).collect::<Vec<_>>();
    let headers = request["headers"].as_object().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let signature = request.get("signature").map(|signature| Signature {
        algorithm: "hmac-sha256".into(),
        secret: text(&signature["secret"]),
        before: text(&signature["before"]),
        header: text(&signature["header"]),
        prefix: text(&signature["prefix"]),
        form: SignatureForm::Hex,
    });
    let body = parts(&request["body"]).into_iter().map(|part| match part {
        Part::Plain(text) => BodyPart::Text(text),
        Part::Secret(name) | Part::Basic(Basic { secret: name, .. }) => BodyPart::Secret(name),
    });
    let request = Request {
        method: request["method"].as_str().unwrap_or("GET").into(),
        url: parts(&request["url"]),
        headers: headers.map(|(name, value)| Header { name: name.clone(), value: parts(value) }).collect(),
        body: body.collect(),
        signature,
        within: request["within"].as_u64(),
        redirects: request["redirects"].as_u64().and_then(|count| count.try_into().ok()).unwrap_or(0),
    };
    match http::send(&request) {
        Ok(response) => format!("{} {}", response.status, String::from_utf8_lossy(&response.body)),
        Err(error) => format!("{error:?}"),
    }
}

fn part(value: &Value) -> Part {
    match (value["secret"].as_str(), value["basic"].as_str()) {
        (Some(name), _) => Part::Secret(name.into()),
        (_, Some(name)) => Part::Basic(Basic { user: "user".into(), secret: name.into() }),
        _ => Part::Plain(value.as_str().unwrap_or_default().into()),
    }
}
