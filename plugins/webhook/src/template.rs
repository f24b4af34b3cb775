//! Texts with places to fill: `{{name}}` for what an entry says, `{{value:name}}` for what the settings say, and
//! `{{secret:name}}` for what the agent fills in.

use std::collections::BTreeMap;

use super::bindings::latido::plugin::http::{BodyPart, Part, Request};
use super::message::Message;

/// A template, taken apart.
pub(crate) type Template = Vec<Piece>;

/// The values that the settings give.
pub(crate) type Values = BTreeMap<String, String>;

/// A part of a template.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Piece {
    /// This text.
    Text(String),
    /// What the entry says under this name; nothing where it says nothing.
    Said(String),
    /// What the settings say under this name.
    Value(String),
    /// A secret.
    Secret(String),
}

/// What has to be done to a text where it is put.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Escape {
    /// Nothing.
    Plain,
    /// It stands between quotes of JSON.
    Json,
    /// The same, in Slack's markup, where three characters mean something.
    Slack,
    /// It stands in an address.
    Address,
    /// It stands in a header: one line of ASCII.
    Header,
}

/// Takes a template apart.
pub(crate) fn read(text: &str) -> Result<Template, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("{{") {
        let (name, after) = behind.split_once("}}").ok_or_else(|| format!("`{{{{{behind}` has no end `}}}}`"))?;
        pieces.push(Piece::Text(before.into()));
        let name = name.trim();
        pieces.push(match name.split_once(':') {
            Some(("secret", name)) => Piece::Secret(name.into()),
            Some(("value", name)) => Piece::Value(name.into()),
            Some((kind, _)) => return Err(format!("`{kind}:` is unknown; known: `secret:`, `value:`")),
            None => Piece::Said(name.into()),
        });
        rest = after;
    }
    pieces.push(Piece::Text(rest.into()));
    Ok(pieces)
}

/// The names of values that a template needs.
pub(crate) fn needs(template: &Template) -> impl Iterator<Item = &str> {
    template.iter().filter_map(|piece| match piece {
        Piece::Value(name) => Some(name.as_str()),
        Piece::Text(_) | Piece::Said(_) | Piece::Secret(_) => None,
    })
}

/// The pieces of an address or a header.
pub(crate) fn parts(template: &Template, values: &Values, message: &Message, escape: Escape) -> Vec<Part> {
    let part = |piece: &Piece| match filled(piece, values, message, escape) {
        Ok(text) => Part::Plain(text),
        Err(secret) => Part::Secret(secret.into()),
    };
    template.iter().map(part).collect()
}

/// The pieces of a body.
pub(crate) fn body(template: &Template, values: &Values, message: &Message, escape: Escape) -> Vec<BodyPart> {
    let part = |piece: &Piece| match filled(piece, values, message, escape) {
        Ok(text) => BodyPart::Text(text),
        Err(secret) => BodyPart::Secret(secret.into()),
    };
    template.iter().map(part).collect()
}

/// A template without secrets as a text.
pub(crate) fn plain(template: &Template, values: &Values, message: &Message) -> String {
    template.iter().filter_map(|piece| filled(piece, values, message, Escape::Plain).ok()).collect()
}

/// A piece of a body that is this text.
pub(crate) fn text(text: &str) -> BodyPart {
    BodyPart::Text(text.into())
}

/// A request that nothing is known of.
pub(crate) fn empty_request() -> Request {
    Request {
        method: String::new(),
        url: Vec::new(),
        headers: Vec::new(),
        body: Vec::new(),
        signature: None,
        within: None,
        redirects: 0,
    }
}

/// The text of a piece, or the name of the secret that it is.
fn filled<'a>(piece: &'a Piece, values: &Values, message: &Message, escape: Escape) -> Result<String, &'a str> {
    match piece {
        Piece::Text(text) => Ok(text.clone()),
        // What is a piece of JSON itself is put as it is.
        Piece::Said(name) if name == "json" => Ok(message.json.clone()),
        Piece::Said(name) => Ok(escaped(message.says(name), escape)),
        Piece::Value(name) => Ok(escaped(values.get(name).map_or("", String::as_str), escape)),
        Piece::Secret(name) => Err(name),
    }
}

fn escaped(text: &str, escape: Escape) -> String {
    match escape {
        Escape::Plain => text.into(),
        Escape::Json => in_json(text),
        Escape::Slack => in_json(&text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")),
        Escape::Address => text.bytes().map(in_address).collect(),
        Escape::Header => {
            text.chars().map(|character| if (' '..='~').contains(&character) { character } else { '?' }).collect()
        }
    }
}

/// A text between quotes of JSON, without the quotes.
fn in_json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default().into()
}

fn in_address(byte: u8) -> String {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    }
}
