//! A sink that sends entries to a web address: one request in a call, with one entry or a few, put together from templates.
//!
//! A request that was answered well is acknowledged at once, so that nothing is sent twice but after a crash between the
//! answer and the agent's note of it. The plugin keeps nothing between calls and knows no secret.

mod answer;
#[path = "../../guest/entries.rs"]
mod entries;
#[path = "../../jsonl/src/line.rs"]
mod line;
mod message;
mod presets;
mod settings;
mod template;

#[expect(unsafe_code, reason = "generated: the exports of a component")]
mod bindings {
    wit_bindgen::generate!({ path: "../../wit", world: "storage-sink" });
    use super::Webhook;
    export!(Webhook with_types_in self);
}

use std::sync::OnceLock;

use bindings::exports::latido::plugin::lifecycle::{Description, Guest as Lifecycle};
use bindings::exports::latido::plugin::sink::{Acknowledgement, Batch, Guest as Sink, PluginError, Refusal};
use bindings::latido::plugin::http::{self, Header, Request, Signature};
use message::Message;
use settings::Settings;
use template::Escape;

#[used]
#[expect(unsafe_code, reason = "a custom section is how the host finds the manifest")]
#[unsafe(link_section = "latido:manifest")]
static MANIFEST: [u8; include_bytes!("../plugin.toml").len()] = *include_bytes!("../plugin.toml");

static SETTINGS: OnceLock<Settings> = OnceLock::new();

struct Webhook;

impl Lifecycle for Webhook {
    fn describe() -> Description {
        Description {
            name: "webhook".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "Sends entries to a web address: chats, pagers, mail, or a server of your own".into(),
            settings_schema: settings::schema(),
        }
    }

    fn configure(settings: String) -> Result<(), PluginError> {
        let settings = settings::read(&settings).map_err(PluginError::InvalidConfig)?;
        SETTINGS.set(settings).map_err(|_| PluginError::Other("configured twice".into()))
    }
}

impl Sink for Webhook {
    fn write(batch: Batch) -> Result<Acknowledgement, PluginError> {
        let settings = SETTINGS.get().ok_or_else(|| PluginError::Other("not configured".into()))?;
        let mut lines = line::Lines::of(&batch);
        let messages: Vec<Message> = entries::of(&batch)
            .take(settings.batch_max)
            .map(|entry| Message::of(&batch, &mut lines, &entry, settings))
            .collect();
        send(settings, &messages)
    }

    fn flush() -> Result<(), PluginError> {
        Ok(()) // nothing is buffered
    }
}

/// Sends messages in one request. Where the server refuses them together, one of them is at fault: half of them are sent, until
/// what is refused is one alone. The rest comes again with the next call.
fn send(settings: &Settings, messages: &[Message]) -> Result<Acknowledgement, PluginError> {
    let Some(last) = messages.last() else { return Ok(Acknowledgement { durable: 0, refused: Vec::new() }) };
    let refused = match answer::meaning(http::send(&request(settings, messages)))? {
        answer::Meaning::Taken => Vec::new(),
        answer::Meaning::Refused(why) => match messages.split_at(messages.len() / 2) {
            ([], _) => vec![Refusal { sequence: last.sequence, why }],
            (half, _) => return send(settings, half),
        },
    };
    Ok(Acknowledgement { durable: last.sequence, refused })
}

/// Puts a request together. There is at least one message.
fn request(settings: &Settings, messages: &[Message]) -> Request {
    let Some(first) = messages.first() else { return template::empty_request() };
    let mut body = Vec::new();
    if settings.is_list {
        body.push(template::text("["));
    }
    for (index, message) in messages.iter().enumerate() {
        if index > 0 {
            body.push(template::text(","));
        }
        body.extend(template::body(&settings.body, &settings.values, message, settings.escape));
    }
    if settings.is_list {
        body.push(template::text("]"));
    }
    let header = |(name, value): &(String, template::Template)| Header {
        name: name.clone(),
        value: template::parts(value, &settings.values, first, Escape::Header),
    };
    let signature = settings.signature.as_ref().map(|signature| Signature {
        algorithm: "hmac-sha256".into(),
        secret: signature.secret.clone(),
        before: template::plain(&signature.before, &settings.values, first),
        header: signature.header.clone(),
        prefix: signature.prefix.clone(),
        form: signature.form,
    });
    Request {
        method: settings.method.clone(),
        url: template::parts(&settings.url, &settings.values, first, Escape::Address),
        headers: settings.headers.iter().map(header).collect(),
        body,
        signature,
        within: None,
        redirects: settings::REDIRECTS,
    }
}
