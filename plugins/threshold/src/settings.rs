//! The settings: a list of bounds.

use serde_json::{Map, Value, json};

use super::bindings::exports::latido::plugin::rule::{Severity, Subject};
use super::facts::FACTS;

/// A bound on one number of some subjects.
pub(crate) struct Bound {
    /// names the finding
    pub(crate) key: String,
    pub(crate) fact: String,
    side: Side,
    limit: f64,
    /// how long it has to be beyond it, in milliseconds
    pub(crate) for_ms: u64,
    pub(crate) severity: Severity,
    /// a name, in which `*` stands for anything
    subjects: String,
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Above,
    Below,
}

const KNOWN: [&str; 7] = ["fact", "above", "below", "for_s", "severity", "subjects", "key"];

impl Bound {
    /// Whether a subject is one of those that it is about.
    pub(crate) fn is_about(&self, subject: &Subject) -> bool {
        fits(&self.subjects, &subject.name)
    }

    pub(crate) fn is_beyond(&self, number: f64) -> bool {
        match self.side {
            Side::Above => number > self.limit,
            Side::Below => number < self.limit,
        }
    }

    /// The side and the bound, in words.
    pub(crate) fn told(&self) -> (&'static str, f64) {
        (if self.side == Side::Above { "above" } else { "below" }, self.limit)
    }
}

/// Reads `{"bounds": [{"fact": …, "above": …, "for_s": …, "severity": …, "subjects": …, "key": …}, …]}`.
pub(crate) fn read(text: &str) -> Result<Vec<Bound>, String> {
    let settings: Map<String, Value> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if let Some(key) = settings.keys().find(|key| *key != "bounds") {
        return Err(format!("unknown setting `{key}`; known: `bounds`, a list of tables"));
    }
    let list = settings.get("bounds").and_then(Value::as_array).filter(|list| !list.is_empty());
    let list = list.ok_or("`bounds` is missing; it is a list such as [{ fact = \"errors\", above = 10 }]")?;
    let mut bounds: Vec<Bound> = Vec::new();
    for (index, given) in list.iter().enumerate() {
        let bound = bound(given).map_err(|why| format!("`bounds.{index}`: {why}"))?;
        if bounds.iter().any(|other| other.key == bound.key) {
            return Err(format!(
                "`bounds.{index}`: another one is `{}` already; give it a `key` of its own",
                bound.key
            ));
        }
        bounds.push(bound);
    }
    Ok(bounds)
}

fn bound(given: &Value) -> Result<Bound, String> {
    let table = given.as_object().ok_or_else(|| format!("it is {given}; it is a table"))?;
    if let Some(key) = table.keys().find(|key| !KNOWN.contains(&key.as_str())) {
        return Err(format!("unknown setting `{key}`; known: {}", KNOWN.join(", ")));
    }
    let text = |key: &str| match table.get(key) {
        None => Ok(None),
        Some(value) => value.as_str().map(Some).ok_or_else(|| format!("`{key}` is {value}; it is a text")),
    };
    let fact =
        text("fact")?.ok_or_else(|| format!("`fact` is missing; known: {}, or an attribute", FACTS.join(", ")))?;
    let number = |key: &str| match table.get(key) {
        None => Ok(None),
        Some(value) => value.as_f64().map(Some).ok_or_else(|| format!("`{key}` is {value}; it is a number")),
    };
    let (side, limit) = match (number("above")?, number("below")?) {
        (Some(limit), None) => (Side::Above, limit),
        (None, Some(limit)) => (Side::Below, limit),
        (Some(_), Some(_)) | (None, None) => return Err("say either `above` or `below`".into()),
    };
    let for_s = number("for_s")?.unwrap_or(0.0);
    if for_s < 0.0 {
        return Err(format!("`for_s` is {for_s}; it is a number of seconds"));
    }
    let side_name = if side == Side::Above { "above" } else { "below" };
    Ok(Bound {
        key: text("key")?.map_or_else(|| format!("{fact}-{side_name}"), Into::into),
        fact: fact.into(),
        side,
        limit,
        for_ms: (for_s * 1000.0) as u64,
        severity: severity(text("severity")?)?,
        subjects: text("subjects")?.unwrap_or("*").into(),
    })
}

fn severity(text: Option<&str>) -> Result<Severity, String> {
    match text {
        Some("info") => Ok(Severity::Info),
        None | Some("warning") => Ok(Severity::Warning),
        Some("critical") => Ok(Severity::Critical),
        Some(other) => Err(format!("`severity` is `{other}`; known: info, warning, critical")),
    }
}

/// Whether a name fits a pattern, in which `*` stands for anything.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((begin, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(begin) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        let Some((_, behind)) = left.split_once(part) else { return false };
        left = behind;
    }
    left.ends_with(end)
}

/// The schema of the settings.
pub(crate) fn schema() -> String {
    let bound = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["fact"],
        "properties": {
            "fact": { "type": "string", "description": format!("{}, or the name of an attribute", FACTS.join(", ")) },
            "above": { "type": "number", "description": "found where it is more" },
            "below": { "type": "number", "description": "found where it is less" },
            "for_s": { "type": "number", "minimum": 0, "description": "for so many seconds" },
            "severity": { "enum": ["info", "warning", "critical"], "description": "warning unless it is said" },
            "subjects": { "type": "string", "description": "their names; * stands for anything" },
            "key": { "type": "string", "description": "names the finding" },
        }
    });
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["bounds"],
        "properties": { "bounds": { "type": "array", "minItems": 1, "items": bound, "description": "what is looked at" } }
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn a_star_stands_for_anything() {
        assert!(
            fits("*", "a") && fits("a*", "abc") && fits("*c", "abc") && fits("a*c", "ac") && fits("a*b*c", "axbyc")
        );
        assert!(!fits("a", "ab") && !fits("a*c", "acd") && !fits("a*b*c", "acb") && !fits("ab*ba", "aba"));
    }
}
