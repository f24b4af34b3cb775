//! The JSON schema of the config file, and which keys it knows at a place.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use super::document::Document;

/// The JSON schema of the config file.
pub fn schema() -> Value {
    let generator = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true).into_generator();
    let mut schema = generator.into_root_schema_for::<Document>().to_value();
    without_null(&mut schema);
    // The same text in every build, however serde_json keeps its maps.
    schema.sort_all_objects();
    schema
}

/// The JSON schema as `latido config schema` prints it and `config/latido.schema.json` holds it.
pub fn schema_text() -> String {
    format!("{:#}\n", schema())
}

/// TOML has no null: an optional key is one that can be left out.
fn without_null(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
                choices.retain(|choice| choice.get("type").and_then(Value::as_str) != Some("null"));
                if let [Value::Object(only)] = choices.as_slice() {
                    let only = only.clone();
                    object.remove("anyOf");
                    let described = object.contains_key("description");
                    object.extend(only.into_iter().filter(|(key, _)| !(described && key == "description")));
                }
            }
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|name| name.as_str() != Some("null"));
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    object.insert("type".to_owned(), only);
                }
            }
            // An absent key is not a null either.
            object.retain(|key, value| !(key == "default" && value.is_null()));
            object.values_mut().for_each(without_null);
        }
        Value::Array(values) => values.iter_mut().for_each(without_null),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What a schema says of the keys of a table.
pub(super) enum Keys<'s> {
    /// These and no others.
    Known(&'s Map<String, Value>),
    /// Names that the writer chooses, all of one shape.
    Named(&'s Value),
    /// Anything.
    Free,
}

/// The keys that `schema` knows, where it describes a table.
pub(super) fn keys(schema: &Value) -> Keys<'_> {
    match (schema.get("properties"), schema.get("additionalProperties")) {
        (Some(Value::Object(known)), _) => Keys::Known(known),
        (_, Some(each)) if each.is_object() => Keys::Named(each),
        _ => Keys::Free,
    }
}

/// Every key of the schema as a path, with `*` for a name that the writer chooses and nothing for a list.
pub fn schema_keys() -> Vec<String> {
    let mut found = Vec::new();
    collect(&schema(), "", &mut found);
    found
}

fn collect(schema: &Value, path: &str, found: &mut Vec<String>) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match keys(schema) {
        Keys::Known(known) => {
            for (key, schema) in known {
                found.push(below(key));
                collect(schema, &below(key), found);
            }
        }
        Keys::Named(each) => collect(each, &below("*"), found),
        Keys::Free => {
            if let Some(items) = schema.get("items") {
                collect(items, path, found);
            }
        }
    }
}
