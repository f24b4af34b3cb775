//! The settings: a preset, and what differs from it.

use serde_json::{Map, Value, json};

use super::bindings::latido::plugin::http::SignatureForm;
use super::presets::{PRESETS, Preset};
use super::template::{self, Escape, Template, Values};

/// Redirects that are followed; the agent judges each.
pub(crate) const REDIRECTS: u8 = 3;

/// Entries in one request, whatever the settings ask for: its body has to fit into a megabyte.
const BATCH_MAX: u64 = 500;

/// What the settings decide.
pub(crate) struct Settings {
    pub(crate) method: String,
    pub(crate) url: Template,
    pub(crate) headers: Vec<(String, Template)>,
    pub(crate) body: Template,
    pub(crate) escape: Escape,
    pub(crate) is_list: bool,
    pub(crate) batch_max: usize,
    pub(crate) text_max: usize,
    pub(crate) values: Values,
    pub(crate) signature: Option<Signing>,
}

/// How requests are signed.
pub(crate) struct Signing {
    pub(crate) secret: String,
    pub(crate) header: String,
    pub(crate) prefix: String,
    pub(crate) before: Template,
    pub(crate) form: SignatureForm,
}

const KNOWN: [&str; 8] = ["preset", "url", "method", "headers", "body", "values", "batch_max", "signature"];

/// Reads the settings, a JSON object.
pub(crate) fn read(text: &str) -> Result<Settings, String> {
    let given: Map<String, Value> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if let Some(key) = given.keys().find(|key| !KNOWN.contains(&key.as_str())) {
        return Err(format!("unknown setting `{key}`; known: {}", KNOWN.join(", ")));
    }
    let preset = preset(given.get("preset"))?;
    let text = |key: &str| match given.get(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(format!("`{key}` is {other}; it is a text")),
    };
    let url = text("url")?.unwrap_or_else(|| preset.url.into());
    if url.is_empty() {
        return Err("`url` is missing; the preset `json` sends to an address of your own".into());
    }
    let body = text("body")?;
    let is_custom = body.is_some();
    let mut settings = Settings {
        method: text("method")?.unwrap_or_else(|| "POST".into()),
        url: named("url", &url)?,
        headers: headers(preset, given.get("headers"))?,
        body: named("body", body.as_deref().unwrap_or(preset.body))?,
        escape: preset.escape,
        is_list: preset.is_list && !is_custom,
        batch_max: if is_custom { 1 } else { preset.batch_max },
        text_max: preset.text_max,
        values: values(given.get("values"))?,
        signature: given.get("signature").map(signing).transpose()?,
    };
    if let Some(count) = given.get("batch_max") {
        let count = count.as_u64().filter(|count| (1..=BATCH_MAX).contains(count) && (*count == 1 || settings.is_list));
        let most = if settings.is_list { BATCH_MAX } else { 1 };
        settings.batch_max =
            usize::try_from(count.ok_or_else(|| format!("`batch_max` is from 1 to {most} here"))?).unwrap_or(1);
    }
    let needed = template::needs(&settings.url).chain(template::needs(&settings.body));
    let needed = needed.chain(settings.headers.iter().flat_map(|(_, value)| template::needs(value)));
    if let Some(name) = needed.into_iter().find(|name| !settings.values.contains_key(*name)) {
        return Err(format!("`values.{name}` is missing; the preset `{}` needs it", preset.name));
    }
    Ok(settings)
}

fn preset(name: Option<&Value>) -> Result<&'static Preset, String> {
    let Some(name) = name else { return PRESETS.first().ok_or_else(String::new) };
    PRESETS.iter().find(|preset| name == preset.name).ok_or_else(|| {
        let known: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        format!("unknown preset {name}; known: {}", known.join(", "))
    })
}

fn named(key: &str, text: &str) -> Result<Template, String> {
    template::read(text).map_err(|why| format!("`{key}`: {why}"))
}

/// The preset's headers, and those of the settings in their place.
fn headers(preset: &Preset, given: Option<&Value>) -> Result<Vec<(String, Template)>, String> {
    let mut headers = Vec::new();
    for (name, value) in preset.headers {
        headers.push(((*name).to_owned(), named(name, value)?));
    }
    for (name, value) in texts("headers", given)? {
        let name = name.to_ascii_lowercase();
        let value = named(&format!("headers.{name}"), &value)?;
        headers.retain(|(known, _)| *known != name);
        headers.push((name, value));
    }
    Ok(headers)
}

fn values(given: Option<&Value>) -> Result<Values, String> {
    Ok(texts("values", given)?.into_iter().collect())
}

fn texts(key: &str, given: Option<&Value>) -> Result<Vec<(String, String)>, String> {
    let Some(given) = given else { return Ok(Vec::new()) };
    let table = given.as_object().ok_or_else(|| format!("`{key}` is {given}; it is a table"))?;
    let text = |(name, value): (&String, &Value)| {
        let text = value.as_str().ok_or_else(|| format!("`{key}.{name}` is {value}; it is a text"))?;
        Ok((name.clone(), text.to_owned()))
    };
    table.iter().map(text).collect()
}

/// Reads `{"secret": …, "header": …, "prefix": …, "before": …, "form": "hex" | "base64"}`.
fn signing(given: &Value) -> Result<Signing, String> {
    let mut signing = Signing {
        secret: String::new(),
        header: "x-latido-signature".into(),
        prefix: "sha256=".into(),
        before: Vec::new(),
        form: SignatureForm::Hex,
    };
    for (name, value) in texts("signature", Some(given))? {
        match (name.as_str(), value.as_str()) {
            ("secret", _) => signing.secret = value,
            ("header", _) => signing.header = value,
            ("prefix", _) => signing.prefix = value,
            ("before", _) => signing.before = named("signature.before", &value)?,
            ("form", "hex") => signing.form = SignatureForm::Hex,
            ("form", "base64") => signing.form = SignatureForm::Base64,
            ("form", other) => return Err(format!("`signature.form` is `{other}`; known: hex, base64")),
            (other, _) => return Err(format!("unknown setting `signature.{other}`")),
        }
    }
    if signing.secret.is_empty() {
        return Err("`signature.secret` is missing; it names a secret that is granted".into());
    }
    Ok(signing)
}

/// The schema of the settings.
pub(crate) fn schema() -> String {
    let presets: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
    let template = |what: &str| json!({ "type": "string", "description": format!("{what}, a template") });
    let table =
        |what: &str| json!({ "type": "object", "description": what, "additionalProperties": { "type": "string" } });
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "preset": { "enum": presets, "description": "what the receiver is; `json` unless it is said" },
            "url": template("where to"),
            "method": { "type": "string", "description": "POST unless it is said" },
            "headers": table("headers beside and in place of the preset's, templates"),
            "body": template("the body of a request with one entry, in place of the preset's"),
            "values": table("what templates take as {{value:name}}"),
            "batch_max": { "type": "integer", "minimum": 1, "maximum": BATCH_MAX, "description": "entries in one request" },
            "signature": table("secret, header, prefix, before (a template), form (hex, base64)"),
        }
    })
    .to_string()
}
