//! What capabilities are asked and answer, as JSON, and back.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::RefusalKind;
use crate::bindings::v0_2::sink::latido::plugin::files::FileError;
use crate::bindings::v0_2::sink::latido::plugin::http::{
    BodyPart, Header, HttpError, Part, Request, Response, ResponseHeader, SignatureForm,
};
use crate::bindings::v0_2::sink::latido::plugin::sql::{SqlError, Value as SqlValue};
use crate::bindings::v0_2::sink::latido::plugin::state::StateError;
use crate::bindings::v0_2::strategy::latido::plugin::workspace::{Entry, Listed, WorkspaceError};

/// An answer that can be shown, and read again.
pub(crate) trait Told: Sized {
    fn told(&self) -> Value;
    fn read(value: &Value) -> Option<Self>;
}

/// A capability's error.
pub(crate) trait Refused: Sized {
    /// The error of this name, or the nearest.
    fn refused(refusal: RefusalKind, why: String) -> Self;
    /// Its name, and its words if it has any.
    fn words(&self) -> (RefusalKind, Option<&str>);
}

/// What came of a call.
pub(super) fn told<T: Told, E: Refused>(answer: &Result<T, E>) -> Value {
    match answer {
        Ok(answer) => json!({ "ok": answer.told() }),
        Err(error) => match error.words() {
            (refusal, None) => json!({ "error": refusal.name() }),
            (refusal, Some(why)) => json!({ "error": { refusal.name(): why } }),
        },
    }
}

/// Reads what came of a call. What cannot be read fails.
pub(super) fn answer<T: Told, E: Refused>(value: &Value) -> Result<T, E> {
    let unreadable = || E::refused(RefusalKind::Failed, format!("the answer cannot be read: {value}"));
    if let Some(ok) = value.get("ok") {
        return T::read(ok).ok_or_else(unreadable);
    }
    let (name, why) = match value.get("error") {
        Some(Value::String(name)) => (name.as_str(), ""),
        Some(Value::Object(case)) => match case.iter().next() {
            Some((name, why)) => (name.as_str(), why.as_str().unwrap_or_default()),
            None => return Err(unreadable()),
        },
        _ => return Err(unreadable()),
    };
    match RefusalKind::ALL.into_iter().find(|refusal| refusal.name() == name) {
        Some(refusal) => Err(E::refused(refusal, why.to_owned())),
        None => Err(unreadable()),
    }
}

/// Bytes: a text where they are one.
pub(crate) fn bytes(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => json!({ "base64": STANDARD.encode(bytes) }),
    }
}

fn read_bytes(value: &Value) -> Option<Vec<u8>> {
    if let Value::String(text) = value {
        return Some(text.clone().into_bytes());
    }
    STANDARD.decode(value.get("base64")?.as_str()?).ok()
}

/// A value of SQL.
pub(crate) fn sql_value(value: &SqlValue) -> Value {
    match value {
        SqlValue::Null => Value::Null,
        SqlValue::Integer(number) => json!(number),
        SqlValue::Real(number) if number.is_finite() => json!(number),
        SqlValue::Real(number) => json!({ "real": number.to_string() }),
        SqlValue::Text(text) => json!(text),
        SqlValue::Blob(bytes) => json!({ "blob": STANDARD.encode(bytes) }),
    }
}

/// A row of values of SQL.
pub(crate) fn sql_row(row: &[SqlValue]) -> Value {
    row.iter().map(sql_value).collect()
}

fn read_sql_value(value: &Value) -> Option<SqlValue> {
    Some(match value {
        Value::Null => SqlValue::Null,
        Value::Bool(flag) => SqlValue::Integer((*flag).into()),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => SqlValue::Integer(whole),
            None => SqlValue::Real(number.as_f64()?),
        },
        Value::String(text) => SqlValue::Text(text.clone()),
        Value::Object(case) => match case.get("real").and_then(Value::as_str) {
            Some(real) => SqlValue::Real(real.parse().ok()?),
            None => SqlValue::Blob(STANDARD.decode(case.get("blob")?.as_str()?).ok()?),
        },
        Value::Array(_) => return None,
    })
}

/// A request; secrets stand in it as in templates, by name.
pub(crate) fn request(request: &Request) -> Value {
    let part = |part: &Part| match part {
        Part::Plain(text) => text.clone(),
        Part::Secret(name) => format!("{{{{secret:{name}}}}}"),
        Part::Basic(basic) => format!("Basic {}:{{{{secret:{}}}}}", basic.user, basic.secret),
    };
    let joined = |parts: &[Part]| parts.iter().map(part).collect::<String>();
    let header = |Header { name, value }: &Header| json!([name, joined(value)]);
    let mut body = Vec::new();
    for part in &request.body {
        match part {
            BodyPart::Text(text) => body.extend_from_slice(text.as_bytes()),
            BodyPart::Bytes(bytes) => body.extend_from_slice(bytes),
            BodyPart::Secret(name) => body.extend_from_slice(format!("{{{{secret:{name}}}}}").as_bytes()),
        }
    }
    let mut told = Map::new();
    told.insert("method".to_owned(), json!(request.method));
    told.insert("url".to_owned(), json!(joined(&request.url)));
    told.insert("headers".to_owned(), request.headers.iter().map(header).collect());
    told.insert("body".to_owned(), bytes(&body));
    if let Some(signature) = &request.signature {
        let form = match signature.form {
            SignatureForm::Hex => "hex",
            SignatureForm::Base64 => "base64",
        };
        told.insert(
            "signature".to_owned(),
            json!({
                "algorithm": signature.algorithm, "secret": signature.secret, "before": signature.before,
                "header": signature.header, "prefix": signature.prefix, "form": form,
            }),
        );
    }
    if let Some(within) = request.within {
        told.insert("within".to_owned(), json!(within));
    }
    told.insert("redirects".to_owned(), json!(request.redirects));
    Value::Object(told)
}

impl Told for u64 {
    fn told(&self) -> Value {
        json!(self)
    }

    fn read(value: &Value) -> Option<Self> {
        value.as_u64()
    }
}

impl Told for () {
    fn told(&self) -> Value {
        Value::Null
    }

    fn read(_: &Value) -> Option<Self> {
        Some(())
    }
}

impl Told for Vec<Vec<SqlValue>> {
    fn told(&self) -> Value {
        self.iter().map(|row| sql_row(row)).collect()
    }

    fn read(value: &Value) -> Option<Self> {
        value.as_array()?.iter().map(|row| row.as_array()?.iter().map(read_sql_value).collect()).collect()
    }
}

impl Told for Vec<u8> {
    fn told(&self) -> Value {
        bytes(self)
    }

    fn read(value: &Value) -> Option<Self> {
        read_bytes(value)
    }
}

impl Told for Option<Vec<u8>> {
    fn told(&self) -> Value {
        self.as_deref().map_or(Value::Null, bytes)
    }

    fn read(value: &Value) -> Option<Self> {
        if value.is_null() { Some(None) } else { read_bytes(value).map(Some) }
    }
}

impl Told for Response {
    fn told(&self) -> Value {
        let headers: Vec<_> = self.headers.iter().map(|header| json!([header.name, header.value])).collect();
        json!({ "status": self.status, "headers": headers, "body": bytes(&self.body) })
    }

    fn read(value: &Value) -> Option<Self> {
        let header = |pair: &Value| {
            Some(ResponseHeader {
                name: pair.get(0)?.as_str()?.to_ascii_lowercase(),
                value: pair.get(1)?.as_str()?.to_owned(),
            })
        };
        let headers = value
            .get("headers")
            .and_then(Value::as_array)
            .map_or(Some(Vec::new()), |headers| headers.iter().map(header).collect())?;
        let body = value.get("body").map_or(Some(Vec::new()), read_bytes)?;
        Some(Self { status: u16::try_from(value.get("status")?.as_u64()?).ok()?, headers, body })
    }
}

impl Told for Entry {
    fn told(&self) -> Value {
        json!({ "size": self.size, "modified": self.modified, "directory": self.directory })
    }

    fn read(value: &Value) -> Option<Self> {
        Some(Self {
            size: value.get("size")?.as_u64()?,
            modified: value.get("modified")?.as_u64()?,
            directory: value.get("directory")?.as_bool()?,
        })
    }
}

impl Told for Vec<Listed> {
    fn told(&self) -> Value {
        self.iter().map(|listed| json!({ "name": listed.name, "entry": listed.entry.told() })).collect()
    }

    fn read(value: &Value) -> Option<Self> {
        let listed = |value: &Value| {
            Some(Listed { name: value.get("name")?.as_str()?.to_owned(), entry: Entry::read(value.get("entry")?)? })
        };
        value.as_array()?.iter().map(listed).collect()
    }
}

impl Refused for SqlError {
    fn refused(refusal: RefusalKind, why: String) -> Self {
        match refusal {
            RefusalKind::Denied => Self::Denied(why),
            RefusalKind::Busy | RefusalKind::Timeout => Self::Busy,
            RefusalKind::Full | RefusalKind::TooLarge => Self::Full,
            RefusalKind::Unreachable | RefusalKind::NotFound | RefusalKind::Failed => Self::Failed(why),
        }
    }

    fn words(&self) -> (RefusalKind, Option<&str>) {
        match self {
            Self::Denied(what) => (RefusalKind::Denied, Some(what)),
            Self::Busy => (RefusalKind::Busy, None),
            Self::Full => (RefusalKind::Full, None),
            Self::Failed(why) => (RefusalKind::Failed, Some(why)),
        }
    }
}

/// `files` and `state` have errors of the same cases, each of a type of its own.
macro_rules! refused_for_want_of_room {
    ($($error:ty),*) => {$(
        impl Refused for $error {
            fn refused(refusal: RefusalKind, why: String) -> Self {
                match refusal {
                    RefusalKind::Denied => Self::Denied(why),
                    RefusalKind::Full | RefusalKind::TooLarge => Self::Full,
                    RefusalKind::Busy
                    | RefusalKind::Timeout
                    | RefusalKind::Unreachable
                    | RefusalKind::NotFound
                    | RefusalKind::Failed => Self::Failed(why),
                }
            }

            fn words(&self) -> (RefusalKind, Option<&str>) {
                match self {
                    Self::Denied(what) => (RefusalKind::Denied, Some(what)),
                    Self::Full => (RefusalKind::Full, None),
                    Self::Failed(why) => (RefusalKind::Failed, Some(why)),
                }
            }
        }
    )*};
}

refused_for_want_of_room!(FileError, StateError);

impl Refused for HttpError {
    fn refused(refusal: RefusalKind, why: String) -> Self {
        match refusal {
            RefusalKind::Denied => Self::Denied(why),
            RefusalKind::Timeout => Self::Timeout,
            RefusalKind::Unreachable => Self::Unreachable(why),
            RefusalKind::TooLarge => Self::TooLarge,
            RefusalKind::Busy | RefusalKind::Full | RefusalKind::NotFound | RefusalKind::Failed => Self::Failed(why),
        }
    }

    fn words(&self) -> (RefusalKind, Option<&str>) {
        match self {
            Self::Denied(what) => (RefusalKind::Denied, Some(what)),
            Self::Timeout => (RefusalKind::Timeout, None),
            Self::Unreachable(why) => (RefusalKind::Unreachable, Some(why)),
            Self::TooLarge => (RefusalKind::TooLarge, None),
            Self::Failed(why) => (RefusalKind::Failed, Some(why)),
        }
    }
}

impl Refused for WorkspaceError {
    fn refused(refusal: RefusalKind, why: String) -> Self {
        match refusal {
            RefusalKind::Denied => Self::Denied(why),
            RefusalKind::NotFound => Self::NotFound,
            RefusalKind::TooLarge | RefusalKind::Full => Self::TooLarge,
            RefusalKind::Busy | RefusalKind::Timeout | RefusalKind::Unreachable | RefusalKind::Failed => {
                Self::Failed(why)
            }
        }
    }

    fn words(&self) -> (RefusalKind, Option<&str>) {
        match self {
            Self::Denied(what) => (RefusalKind::Denied, Some(what)),
            Self::NotFound => (RefusalKind::NotFound, None),
            Self::TooLarge => (RefusalKind::TooLarge, None),
            Self::Failed(why) => (RefusalKind::Failed, Some(why)),
        }
    }
}
